//go:build real || soak

package packages_test

import (
	"fmt"
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

// newApplication is a place with an application in app/ whose bundle has Cabrank and
// a stand-in for gruf. Bundler takes both from a source in a folder, which has the gems of
// all platforms.
func newApplication(t *testing.T) *gemHome {
	t.Helper()
	g := newGemHome(t)
	var gems []string
	for _, platform := range []string{"x86_64-linux", "aarch64-linux", "x86_64-darwin", "arm64-darwin"} {
		gems = append(gems, dist(t, "cabrank-*-"+platform+".gem"))
	}
	g.write("app/Gemfile", "source 'file://"+gemSource(t, gems...)+"'\n\ngem 'cabrank'\ngem 'gruf'\n")
	g.in("app").run("bundle", "install")
	return g
}

// In a bundle: installed, run and locked by Bundler.
func TestBundler(t *testing.T) {
	g := newApplication(t)
	for _, test := range []struct {
		name string
		run  func(*gemHome)
	}{
		{"works", worksInBundle},
		{"workers of the bundle", runsWorkersOfBundle},
		{"gruf-relay", isGrufRelay},
		{"lock", locksPlatforms},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(&gemHome{place{t, g.dir, g.env}}) })
	}
}

func worksInBundle(g *gemHome) {
	works(g.t, func(args ...string) *exec.Cmd {
		return g.in("app").command(append([]string{"bundle", "exec", "cabrank"}, args...)...)
	})
	g.in("app").run("bundle", "binstubs", "cabrank")
	testkit.Says(g.t, g.in("app").run("bin/cabrank", "version"), "version: "+version(g.t)+"\n")
}

// What Bundler sets reaches the workers, through a second Bundler or without one.
func runsWorkersOfBundle(g *gemHome) {
	for _, worker := range [][]string{{"bundle", "exec", "gruf"}, {"gruf"}} {
		line := slices.Concat([]string{"bundle", "exec", "cabrank", "run", "--"}, worker, []string{"--host", "{addr}"})
		c := g.start("app", nil, line...)
		c.WaitWorkers(1)
		told := regexp.MustCompile(`gruf --host 127\.0\.0\.1:\d+ RUBYOPT=-r\S+bundler/setup BUNDLE_GEMFILE=` + g.dir + `/app/Gemfile GEM_HOME=` + g.dir + `/gems`)
		testkit.Want(g.t, told.MatchString(c.Output()), "%s: it was started with\n%s", worker, c.Output())
		wantCalls(g.t, c)
		if all := rubies(c); len(all) != 1 {
			g.t.Errorf("%s: %d processes run Ruby, want the worker alone: %s", worker, len(all), harness.Describe(all))
		}
		c.Stop()
	}
}

// By the name gruf-relay and without arguments it does what that gem's command did: it runs
// by gruf-relay.yml, or without any file, with gruf from the bundle as its workers.
func isGrufRelay(g *gemHome) {
	port := testkit.FreePorts(g.t, 120)
	wantGruf := func(env ...string) {
		c := g.start("app", env, "bundle", "exec", "gruf-relay")
		c.WaitWorkers(1)
		told := fmt.Sprintf("gruf --host 127.0.0.1:%d --health-check --backtrace-on-error RUBYOPT=-r", port)
		testkit.Says(g.t, c.Output(), told)
		wantCalls(g.t, c)
		c.Stop()
	}
	wantGruf(fmt.Sprintf("WORKERS_START_PORT=%d", port))
	g.write("app/gruf-relay.yml", fmt.Sprintf("workers: {start_port: %d}\n", port))
	wantGruf()
	for flag, want := range map[string]string{"-v": "version: " + version(g.t), "-h": "Usage:"} {
		said := g.in("app").run("bundle", "exec", "gruf-relay", flag)
		testkit.Want(g.t, strings.Contains(said, want), "gruf-relay %s has no %q:\n%s", flag, want, said)
	}
}

// The lock of one machine serves another: each platform has its gem, Alpine that of Linux.
func locksPlatforms(g *gemHome) {
	g.in("app").run("bundle", "lock", "--add-platform", "aarch64-linux", "x86_64-linux-musl", "arm64-darwin")
	lock, err := os.ReadFile(filepath.Join(g.dir, "app", "Gemfile.lock"))
	testkit.Must(g.t, err)
	for _, platform := range []string{"x86_64-linux", "aarch64-linux", "arm64-darwin"} {
		want := "    cabrank (" + version(g.t) + "-" + platform + ")\n"
		testkit.Want(g.t, strings.Contains(string(lock), want), "Gemfile.lock has no %q:\n%s", want, lock)
	}
}

// wantCalls makes calls to the workers of examples/.
func wantCalls(t *testing.T, c *harness.Cabrank) {
	t.Helper()
	failed := harness.CallCPU(t, harness.Dial(t, c.Addr), 20, 4)
	testkit.Want(t, len(failed) == 0, "%v", failed)
}
