//go:build real || soak

package packages_test

import (
	"os/exec"
	"testing"
)

// gemSource makes a folder that Bundler takes gems from: those that are given, and
// stand-ins for rails, which is empty, and for gruf, which serves examples/ruby.
func gemSource(t *testing.T, gems ...string) (folder string) {
	t.Helper()
	const script = `mkdir "$1/gems"
cp -r testdata/gruf "$2/gruf"
cp -r ../../../examples/ruby "$2/gruf/ruby"
for gem; do case $gem in *.gem) cp "$gem" "$1/gems";; esac; done
cd "$2/gruf"
ruby -e 'print Gem::Specification.new("rails", "8.1.0") { |s| s.summary, s.authors = "Stands in", ["Cabrank authors"] }.to_ruby' >rails.gemspec
gem build --output "$1/gems/gruf-2.99.0.gem" gruf.gemspec
gem build --output "$1/gems/rails-8.1.0.gem" rails.gemspec
gem generate_index --directory "$1"`
	folder = t.TempDir()
	must(t, exec.Command("sh", append([]string{"-euc", script, "sh", folder, t.TempDir()}, gems...)...))
	return folder
}
