# frozen_string_literal: true

# Stands in for the gem gruf. Beside what is here it has examples/ruby, which it serves.
Gem::Specification.new do |s|
  s.name = 'gruf'
  s.version = '2.99.0'
  s.summary = 'Stands in for gruf'
  s.authors = ['Cabrank authors']
  s.files = Dir['{exe,ruby}/**/*']
  s.bindir = 'exe'
  s.executables = ['gruf']
  s.add_dependency 'grpc'
end
