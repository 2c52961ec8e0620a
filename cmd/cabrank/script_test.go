//go:build real || soak

package main

import (
	"errors"
	"os/exec"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/cabrank/cabrank/internal/lab/result/made"
)

// TestMain makes this program available to the scripts as "cabrank", without a
// build: the test binary runs main when it is called by that name.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"cabrank": main})
}

// TestScripts runs the command line as people do. A script that needs a
// complete relay or real workers belongs elsewhere.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "makerun": makeRun},
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

// makeRun makes up a run of a scenario: makerun FOLDER SEED EFFECT, which is the latency
// of the second arm over that of the first.
func makeRun(ts *testscript.TestScript, negated bool, args []string) {
	if negated || len(args) != 3 {
		ts.Fatalf("usage: makerun FOLDER SEED EFFECT")
	}
	seed, err := strconv.ParseUint(args[1], 10, 32)
	ts.Check(err)
	effect, err := strconv.ParseFloat(args[2], 64)
	ts.Check(err)
	_, err = made.Save(ts.MkAbs(args[0]), made.Options{
		Arms: []string{"round-robin", "cabrank"}, Rates: []int{700}, Rounds: 10, Seconds: 15,
		Effect: effect, Workers: 2, Seed: seed, Machine: uint64(effect * 100),
	})
	ts.Check(err)
}
