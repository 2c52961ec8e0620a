package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

// lines makes the events of a run, one from each "ACTION TEST OUTPUT"; a package has "-".
func lines(events ...string) string {
	var b strings.Builder
	for _, e := range events {
		f := strings.SplitN(e, " ", 3)
		if f[1] == "-" {
			f[1] = ""
		}
		fmt.Fprintf(&b, `{"Action":%q,"Package":"m/p","Test":%q,"Output":%q}`+"\n", f[0], f[1], strings.Join(f[2:], "")+"\n")
	}
	return b.String()
}

func parsed(t *testing.T, events ...string) *result {
	t.Helper()
	r, err := readResult(strings.NewReader(lines(events...)))
	testkit.Must(t, err)
	return r
}

// A test that has failed is run again; a panic, a race, what was left behind, and a
// package that fails without a test are not.
func TestVerdict(t *testing.T) {
	for _, c := range []struct{ what, events, again, final string }{
		{what: "nothing failed", events: "run TestA|pass TestA|pass -"},
		{what: "a test", events: "run TestA|output TestA  a_test.go:1: late|fail TestA|fail -", again: "m/p TestA"},
		{what: "two subtests", events: "run TestA|run TestA/b|run TestA/c|fail TestA/b|fail TestA/c|fail TestA|fail -", again: "m/p TestA"},
		{what: "a log that speaks of a panic", events: `output TestA         panic: of a worker|fail TestA|fail -`, again: "m/p TestA"},
		{what: "a panic", events: "run TestA|output TestA panic: boom|fail TestA|fail -", final: "panic:"},
		{what: "out of time", events: "run TestA|output TestA panic: test timed out after 1s|fail TestA|fail -", final: "panic:"},
		{what: "a race", events: "output TestA WARNING: DATA RACE|fail TestA|fail -", final: "DATA RACE"},
		{what: "a panic of cabrank", events: "output TestA     process.go:1: not to be run again: cabrank has written|fail TestA|fail -", final: "not to be run again"},
		{what: "a leak after all tests", events: "run TestA|pass TestA|output - after all tests: goroutines|fail -", final: "without a test"},
		{what: "no build", events: "build-output - x.go:1: undefined|build-fail -|fail -", final: "without a test"},
		{what: "much", events: "fail TestA|fail TestB|fail TestC|fail TestD|fail TestE|fail TestF|fail -", final: "too many"},
	} {
		again, final := parsed(t, strings.Split(c.events, "|")...).verdict()
		var got []string
		for _, n := range again {
			got = append(got, n.String())
		}
		if strings.Join(got, " ") != c.again || c.final == "" && final != "" || !strings.Contains(final, c.final) {
			t.Errorf("%s: again %q, final %q; want %q, %q", c.what, got, final, c.again, c.final)
		}
	}
}

func TestLeavesAreCounted(t *testing.T) {
	r := parsed(t, "run TestA", "run TestA/b", "run TestA/b/c", "run TestA/b/d", "run TestB", "pass -")
	testkit.Equal(t, r.leaves(), 3, "leaves")
}

// The ledger has the first failure, its subtests' lines included, cut to a screen.
func TestLedger(t *testing.T) {
	r := parsed(t, "run TestA/b", "output TestA/b late", "fail TestA/b", "output TestA in all", "fail TestA", "output TestB other", "fail -")
	got := entry(name{"m/p", "TestA"}, r.said(name{"m/p", "TestA"})+strings.Repeat("line\n", 100))
	for _, want := range []string{"FLAKE m/p TestA", "late\n", "in all\n", "    ...\n"} {
		testkit.Says(t, got, want)
	}
	n := strings.Count(got, "\n")
	testkit.Want(t, !strings.Contains(got, "other") && n <= shownLines+5, "%d lines:\n%s", n, got)
}

// A test is chosen by its whole name, a subtest within its test.
func TestPattern(t *testing.T) {
	lane := []promise{{"test/real/a", "TestA/b"}, {"test/real/a", "TestC"}, {"test/real/b", "TestC"}}
	if got := pattern(lane[:2]); got != "^TestA$/^b$|^TestC$" {
		t.Error(got)
	}
	if got := of(lane, name{module + "/test/real/a", "TestA"}); len(got) != 1 || got[0] != lane[0] {
		t.Errorf("%v", got)
	}
}

// A package is tested in the folder of its module.
func TestSplit(t *testing.T) {
	for dir, want := range map[string]string{"": ". ./", "cmd/cabrank": ". ./cmd/cabrank", "lab/test/real/lab": "lab ./test/real/lab"} {
		in, pkg := split(dir)
		testkit.Want(t, in+" "+pkg == want, "%q: %s %s, want %s", dir, in, pkg, want)
	}
}

// Of a package in which a tag but makes a run longer all tests soak; of others those
// in files with the tag.
func TestWhatSoaks(t *testing.T) {
	for dir, want := range map[string]string{"../../internal/ranksim": ".", "../../cmd/cabrank": "^(TestScripts)$"} {
		got, err := testsToSoak(dir)
		testkit.Want(t, got == want && err == nil, "%s: %q, %v; want %q", dir, got, err, want)
	}
}
