# frozen_string_literal: true

# Stands in for the gem gruf: a command `gruf` that serves examples/ruby.
Gem::Specification.new do |s|
  s.name = 'gruf'
  s.version = '2.99.0'
  s.summary = 'Stands in for gruf'
  s.authors = ['Cabrank authors']
  s.files = ['exe/gruf']
  s.bindir = 'exe'
  s.executables = ['gruf']
  s.add_dependency 'grpc'
end
