// Package script runs scripts of what people type, of github.com/rogpeppe/go-internal, for
// the tests of our programs.
package script

import (
	"errors"
	"maps"
	"os/exec"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// Command is a word of scripts.
type Command = func(ts *testscript.TestScript, negated bool, args []string)

// Run runs the scripts of testdata/script. They have exits beside testscript's own words,
// and more.
func Run(t *testing.T, more map[string]Command) {
	t.Helper()
	words := map[string]Command{"exits": exits}
	maps.Copy(words, more)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds:                words,
	})
}

// exits runs a command and checks its status: exits STATUS COMMAND ARGS...
func exits(ts *testscript.TestScript, negated bool, args []string) {
	if negated || len(args) < 2 {
		ts.Fatalf("usage: exits STATUS COMMAND ARGS...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	status, err := 0, ts.Exec(args[1], args[2:]...)
	var failed *exec.ExitError
	switch {
	case errors.As(err, &failed):
		status = failed.ExitCode()
	case err != nil:
		ts.Fatalf("%v", err)
	}
	if status != want {
		ts.Fatalf("exit status %d, want %d", status, want)
	}
}
