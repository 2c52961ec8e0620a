//go:build real || soak

package packages_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// place is a folder that is home to an installer of packages, with the variables that
// commands have there. Nothing of the user who runs the test is known in it.
type place struct {
	t   *testing.T
	dir string
	env []string
}

// in is the same place for commands that run in a folder of it.
func (p place) in(folder string) place {
	p.dir = filepath.Join(p.dir, folder)
	return p
}

// command is a command line in the place, found by its PATH.
func (p place) command(line ...string) *exec.Cmd {
	cmd := exec.Command("/usr/bin/env", line...)
	cmd.Dir, cmd.Env = p.dir, p.env
	return cmd
}

// run runs a command to its end, which has to be a good one, and returns its output.
func (p place) run(line ...string) string {
	p.t.Helper()
	return must(p.t, p.command(line...))
}

// must runs a command to its end and returns what it has printed.
func must(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	return string(out)
}
