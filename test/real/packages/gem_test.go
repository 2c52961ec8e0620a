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
	if err != nil {
		t.Fatalf("%v: run 'scripts/install-deps.sh workers' first", err)
	}
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
	if !strings.Contains(said, "Successfully installed cabrank-") || regexp.MustCompile(`(?i)warning|error`).MatchString(said) {
		t.Errorf("gem install said\n%s", said)
	}
	works(t, func(args ...string) *exec.Cmd { return g.command(append([]string{"cabrank"}, args...)...) })

	path := g.run("ruby", "-W", "-r", "cabrank", "-e", "print Cabrank.path")
	if said := g.run(path, "version"); !strings.Contains(said, "version: "+version(t)) {
		t.Errorf("Cabrank.path is %s, which says\n%s", path, said)
	}
	g.run("gem", "uninstall", "--executables", "cabrank")
	if left := g.files(); len(left) > 0 {
		t.Errorf("gem uninstall has left %q", left)
	}
}

// The command becomes the program: the process that was started is Cabrank, whatever it
// came from, with its arguments as they were given.
func TestGemLeavesNoRuby(t *testing.T) {
	g := newGemHome(t)
	g.run("gem", "install", "--local", "--no-document", thisGem(t))
	path := g.run("ruby", "-r", "cabrank", "-e", "print Cabrank.path")
	c := g.start(".", nil, append([]string{"cabrank", "run", "--"}, harness.FaultWorker(t, "-say", "a  b $HOME 'c'")...)...)
	c.WaitWorkers(1)
	if got, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", c.PID)); err != nil || got != path {
		t.Errorf("the process is %s (%v), want %s", got, err, path)
	}
	if !strings.Contains(c.Output(), `"a  b $HOME 'c'"`) {
		t.Errorf("the arguments have changed: %s", c.Output())
	}
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
		if !line.MatchString(wrong.Log()) || wrong.Output() != "" {
			t.Errorf("%s said %q, want a line like %s", name, wrong.Log()+wrong.Output(), line)
		}
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
