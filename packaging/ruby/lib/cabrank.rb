# frozen_string_literal: true

# The gem brings the program Cabrank; all that Ruby needs to know of it is its path.
module Cabrank
  # NoProgram is raised when the gem was made for another platform.
  class NoProgram < StandardError; end

  # The absolute path of the program for this platform, for a binstub or a link of your own:
  #
  #   ln -s "$(ruby -rcabrank -e 'print Cabrank.path')" /usr/local/bin/cabrank
  #
  # Raises NoProgram if the gem was made for another platform, as in a vendor/bundle that
  # was copied from another machine.
  def self.path
    programs = File.expand_path('../libexec', __dir__)
    path = File.join(programs, platform, 'cabrank')
    return path if File.file?(path)

    raise NoProgram, "the gem in #{File.dirname(programs)} is for #{Dir.children(programs).join(', ')}, and this " \
                     "Ruby is for #{platform}: install the gem here, or add the platform to Gemfile.lock " \
                     "(bundle lock --add-platform #{platform})"
  end

  # The platform of this Ruby as gems name it, say x86_64-linux. It has neither the C library
  # of Linux nor the version of macOS: the program is static.
  def self.platform
    cpu, system = RUBY_PLATFORM.split('-')
    [cpu, system && system[/\A[a-z]+/]].compact.join('-')
  end
  private_class_method :platform
end
