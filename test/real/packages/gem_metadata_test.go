//go:build real || soak

package packages_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

// What the gem says of itself is what RubyGems would have written, to the letter, from
// testdata/cabrank.gemspec: all but the date and its own version.
func TestGemIsAsRubyGemsBuildsIt(t *testing.T) {
	g := newGemHome(t)
	ours := thisGem(t)
	g.run("gem", "unpack", "--target", g.dir, ours)
	folder := strings.TrimSuffix(filepath.Base(ours), ".gem")
	gemspec, err := os.ReadFile(filepath.Join("testdata", "cabrank.gemspec"))
	testkit.Must(t, err)
	g.write(filepath.Join(folder, "cabrank.gemspec"), string(gemspec))
	g.write(filepath.Join(folder, "libexec", gemPlatform(t), "cabrank"), "") // to pack it takes seconds
	g.env = append(g.env, "PLATFORM="+gemPlatform(t), "TREE_VERSION="+version(t),
		"GEM_VERSION="+regexp.MustCompile(`^cabrank-(.+)-\w+-\w+$`).FindStringSubmatch(folder)[1])
	theirs := filepath.Join(g.dir, "theirs.gem")
	if said := g.in(folder).run("gem", "build", "--strict", "--output", theirs, "cabrank.gemspec"); strings.Contains(said, "WARNING") {
		t.Errorf("gem build said\n%s", said)
	}

	if got, want := g.run("gem", "spec", ours), g.run("gem", "spec", theirs); undated(got) != undated(want) {
		t.Errorf("gem spec prints\n%s\nwant\n%s", got, want)
	}
	if got, want := metadata(t, ours), metadata(t, theirs); undated(got) != undated(want) {
		t.Errorf("metadata.gz is\n%s\nwant\n%s", got, want)
	}
}

// metadata is what the file metadata.gz of a gem has.
func metadata(t *testing.T, gem string) string {
	t.Helper()
	return must(t, exec.Command("sh", "-c", `tar -xOf "$0" metadata.gz | gzip -d`, gem))
}

// undated is a specification without what depends on the day and the machine.
func undated(spec string) string {
	return regexp.MustCompile(`(?m)^(date|rubygems_version): .*\n`).ReplaceAllString(spec, "")
}
