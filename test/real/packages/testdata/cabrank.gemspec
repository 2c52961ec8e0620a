# frozen_string_literal: true

# The gem as its authors would describe it to RubyGems, to compare with what packaging/
# writes without it.
Gem::Specification.new do |s|
  home = 'https://github.com/cabrank/cabrank'
  s.name = 'cabrank'
  s.version = ENV.fetch('GEM_VERSION')
  s.platform = ENV.fetch('PLATFORM')
  s.summary = 'One small binary between gRPC callers and the workers that serve them'
  s.description = <<~TEXT.chomp
    Cabrank starts N workers of a service, watches and replaces them, and gives
    each gRPC call to the first free slot from one bounded, deadline-aware queue.
    No call is lost when workers change. It serves callers over gRPC and WebSocket.
  TEXT
  s.authors = ['Cabrank authors']
  s.email = ['cabrank@users.noreply.github.com']
  s.homepage = home
  s.license = 'MIT'
  s.metadata = {
    'bug_tracker_uri' => "#{home}/issues",
    'changelog_uri' => "#{home}/blob/v#{ENV.fetch('TREE_VERSION')}/CHANGELOG.md",
    'documentation_uri' => "#{home}/blob/v#{ENV.fetch('TREE_VERSION')}/docs/install.md",
    'rubygems_mfa_required' => 'true',
    'source_code_uri' => home
  }
  s.required_ruby_version = '>= 2.7'
  s.files = Dir['**/*'].select { |path| File.file?(path) && path != 'cabrank.gemspec' }
  s.bindir = 'exe'
  s.executables = %w[cabrank gruf-relay]
end
