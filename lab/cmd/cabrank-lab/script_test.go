//go:build real || soak

package main

import (
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/cabrank/cabrank/internal/testkit/script"
	"github.com/cabrank/cabrank/lab/test/made"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"cabrank-lab": main})
}

// TestScripts runs the command line as people do.
func TestScripts(t *testing.T) {
	script.Run(t, map[string]script.Command{"makerun": makeRun})
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
