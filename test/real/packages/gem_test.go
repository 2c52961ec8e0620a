//go:build real || soak

package packages_test

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// A gemHome is a place for gems in which there are none yet but what comes with the Ruby
// of the machine. It holds gems/ (GEM_HOME) and what a test puts there.
type gemHome struct{ place }

func newGemHome(t *testing.T) *gemHome {
	t.Helper()
	g := &gemHome{place{t: t, dir: harness.ShortTempDir(t)}}
	ruby, err := exec.LookPath("ruby")
	testkit.Need(t, err == nil, "%v: run 'scripts/install-deps.sh workers' first", err)
	g.env = []string{
		"HOME=" + g.dir, "GEM_HOME=" + filepath.Join(g.dir, "gems"), "LANG=C.UTF-8",
		"PATH=" + filepath.Join(g.dir, "gems", "bin") + ":" + filepath.Dir(ruby) + ":/usr/bin:/bin",
	}
	return g
}

// write writes a file of the place.
func (g *gemHome) write(name, text string) {
	g.t.Helper()
	path := filepath.Join(g.dir, name)
	testkit.Must(g.t, os.MkdirAll(filepath.Dir(path), 0o700))
	testkit.Must(g.t, os.WriteFile(path, []byte(text), 0o700))
}

// files are those below GEM_HOME, without the folders that RubyGems keeps.
func (g *gemHome) files() (all []string) {
	g.t.Helper()
	home := filepath.Join(g.dir, "gems")
	err := filepath.WalkDir(home, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			all = append(all, strings.TrimPrefix(path, home+"/"))
		}
		return err
	})
	testkit.Must(g.t, err)
	return all
}

// thisGem is the gem of this platform.
func thisGem(t *testing.T) string {
	t.Helper()
	return dist(t, "cabrank-*-"+gemPlatform(t)+".gem")
}

// gemPlatform is this platform as gems name it, without a C library.
func gemPlatform(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("ruby", "-e", `l = Gem::Platform.local; print [l.cpu, l.os].join("-")`).Output()
	testkit.Must(t, err)
	return string(out)
}

// The gem of this platform, installed by the gem command of the machine, with its
// documentation; uninstalled it leaves nothing.
func TestGem(t *testing.T) {
	g := newGemHome(t)
	said := g.run("gem", "install", "--local", "--document", "ri,rdoc", thisGem(t))
	testkit.Want(t, strings.Contains(said, "Successfully installed cabrank-") && !regexp.MustCompile(`(?i)warning|error`).MatchString(said),
		"gem install said\n%s", said)
	works(t, func(args ...string) *exec.Cmd { return g.command(append([]string{"cabrank"}, args...)...) })

	path := g.run("ruby", "-W", "-r", "cabrank", "-e", "print Cabrank.path")
	if said := g.run(path, "version"); !strings.Contains(said, "version: "+version(t)) {
		t.Errorf("Cabrank.path is %s, which says\n%s", path, said)
	}
	g.run("gem", "uninstall", "--executables", "cabrank")
	left := g.files()
	testkit.Want(t, len(left) == 0, "gem uninstall has left %q", left)
}

// The command becomes the program: the process that was started is Cabrank, whatever it
// came from, with its arguments as they were given.
func TestGemLeavesNoRuby(t *testing.T) {
	g := newGemHome(t)
	g.run("gem", "install", "--local", "--no-document", thisGem(t))
	path := g.run("ruby", "-r", "cabrank", "-e", "print Cabrank.path")
	c := g.start(".", nil, append([]string{"cabrank", "run", "--"}, harness.FaultWorker(t, "-say", "a  b $HOME 'c'")...)...)
	c.WaitWorkers(1)
	got, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", c.PID))
	testkit.Want(t, err == nil && got == path, "the process is %s (%v), want %s", got, err, path)
	testkit.Says(t, c.Output(), `"a  b $HOME 'c'"`)
	if rubies := rubies(c); len(rubies) > 0 {
		t.Errorf("still there: %s", harness.Describe(rubies))
	}
	c.Stop()
}

// A gem of another platform, as in a folder that was copied from there, says so in a line.
func TestGemOfAnotherPlatform(t *testing.T) {
	g := newGemHome(t)
	other := dist(t, "cabrank-*-arm64-darwin.gem")
	g.run("gem", "unpack", "--target", g.dir, other)
	folder := filepath.Join(g.dir, strings.TrimSuffix(filepath.Base(other), ".gem"))
	for _, name := range []string{"cabrank", "gruf-relay"} {
		wrong := harness.StartCommand(t, g.command("ruby", filepath.Join(folder, "exe", name), "version"))
		wrong.WantExit(harness.Patience, 2)
		line := regexp.MustCompile(`^cabrank: the gem in \S+ is for arm64-darwin, and this Ruby is for ` + gemPlatform(t) + `: .*\n$`)
		testkit.Want(t, line.MatchString(wrong.Log()) && wrong.Output() == "",
			"%s said %q, want a line like %s", name, wrong.Log()+wrong.Output(), line)
	}
}

// start starts a command line that becomes cabrank with one worker, in a folder and with
// more variables, and waits until it listens.
func (g *gemHome) start(folder string, env []string, line ...string) *harness.Cabrank {
	g.t.Helper()
	cmd := g.in(folder).command(line...)
	cmd.Env = slices.Concat(cmd.Env, []string{
		"SERVER_HOST=127.0.0.1", "SERVER_PORT=0", "PROBES_ENABLED=false", "METRICS_ENABLED=false", "CABRANK_CONTROL=off",
		"WORKERS_COUNT=1",
	}, env)
	c := &harness.Cabrank{Process: harness.StartCommand(g.t, cmd), Ended: true}
	c.Addr = c.Listening("listening")
	return c
}

// rubies are the processes of cabrank that run Ruby.
func rubies(c *harness.Cabrank) (all []int) {
	for _, pid := range c.Family() {
		exe, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
		if strings.HasPrefix(filepath.Base(exe), "ruby") {
			all = append(all, pid)
		}
	}
	return all
}

// What the gem says of itself is what RubyGems would have written, to the letter, from
// testdata/cabrank.gemspec: all but the date and its own version.
func TestGemIsAsRubyGemsBuildsIt(t *testing.T) {
	g := newGemHome(t)
	ours := thisGem(t)
	g.run("gem", "unpack", "--target", g.dir, ours)
	folder := strings.TrimSuffix(filepath.Base(ours), ".gem")
	gemspec := testkit.ReadFile(t, filepath.Join("testdata", "cabrank.gemspec"))
	g.write(filepath.Join(folder, "cabrank.gemspec"), string(gemspec))
	g.write(filepath.Join(folder, "libexec", gemPlatform(t), "cabrank"), "") // to pack it takes seconds
	g.env = append(g.env, "PLATFORM="+gemPlatform(t), "TREE_VERSION="+version(t),
		"GEM_VERSION="+regexp.MustCompile(`^cabrank-(.+)-\w+-\w+$`).FindStringSubmatch(folder)[1])
	theirs := filepath.Join(g.dir, "theirs.gem")
	said := g.in(folder).run("gem", "build", "--strict", "--output", theirs, "cabrank.gemspec")
	testkit.Want(t, !strings.Contains(said, "WARNING"), "gem build said\n%s", said)

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
