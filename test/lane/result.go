package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// result is what a run of tests has given, as `go test -json` tells it.
type result struct {
	ran      map[name]bool            // every test and subtest; packages not
	failed   []name                   // in the order in which they failed, subtests before their test; not packages
	packages map[string]packageResult // by import path
	output   map[name]*strings.Builder
}

// name is of a test, or of a package if it has no test.
type name struct{ pkg, test string }

func (n name) String() string { return strings.TrimSuffix(n.pkg+" "+n.test, " ") }

// top is the test that a subtest belongs to.
func (n name) top() name {
	n.test, _, _ = strings.Cut(n.test, "/")
	return n
}

type packageResult struct {
	failed  bool
	seconds float64
}

// event is a line of `go test -json`.
type event struct {
	Action     string
	Package    string
	ImportPath string // of what is built
	Test       string
	Output     string
	Elapsed    float64
}

func newResult() *result {
	return &result{ran: map[name]bool{}, packages: map[string]packageResult{}, output: map[name]*strings.Builder{}}
}

// merge adds what tests of other packages have given.
func (r *result) merge(o *result) {
	maps.Copy(r.ran, o.ran)
	maps.Copy(r.packages, o.packages)
	maps.Copy(r.output, o.output)
	r.failed = append(r.failed, o.failed...)
}

func readResult(events io.Reader) (*result, error) {
	r := newResult()
	lines := bufio.NewScanner(events)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil { //nolint:musttag // the names are those of Go
			return nil, err
		}
		r.add(e)
	}
	return r, lines.Err()
}

func (r *result) add(e event) {
	n := name{cmp.Or(e.Package, e.ImportPath), e.Test}
	switch e.Action {
	case "run":
		r.ran[n] = true
	case "output", "build-output":
		if r.output[n] == nil {
			r.output[n] = &strings.Builder{}
		}
		r.output[n].WriteString(e.Output)
	case "fail", "pass", "skip", "build-fail":
		failed := e.Action == "fail" || e.Action == "build-fail"
		if e.Test == "" {
			r.packages[n.pkg] = packageResult{failed, e.Elapsed}
		} else if failed {
			r.failed = append(r.failed, n)
		}
	}
}

// leaves counts the tests that have no subtests.
func (r *result) leaves() int {
	parents := map[name]bool{}
	for n := range r.ran {
		if at := strings.LastIndex(n.test, "/"); at >= 0 {
			parents[name{n.pkg, n.test[:at]}] = true
		}
	}
	return len(r.ran) - len(parents)
}

// never matches what is not run again: a panic and a race, of the test or, by the
// words of testkit.NotAgain, of a program that it ran; and what a test has left behind.
var never = regexp.MustCompile(`(?m)^(panic: |fatal error: |WARNING: DATA RACE)|not to be run again: `)

// verdict says which tests to run again, or why none are.
func (r *result) verdict() (again []name, final string) {
	for n, output := range r.output {
		if line := never.FindString(output.String()); line != "" && r.packages[n.pkg].failed {
			return nil, n.String() + ": " + strings.TrimSpace(line) + " is not for a second try"
		}
	}
	for _, n := range r.failed {
		if !slices.Contains(again, n.top()) {
			again = append(again, n.top())
		}
	}
	for pkg, p := range r.packages {
		if p.failed && !slices.ContainsFunc(again, func(n name) bool { return n.pkg == pkg }) {
			return nil, pkg + " has failed without a test that did: it does not build, or left something behind"
		}
	}
	if len(again) > mostAgain {
		return nil, "too many tests have failed to run them again"
	}
	return again, ""
}

// mostAgain is how many tests of a run may have a second try: where more fail,
// something is broken.
const mostAgain = 5

// said is the output of a test that failed, its subtests' included.
func (r *result) said(top name) string {
	var all strings.Builder
	for _, n := range r.failed {
		if n.top() == top && r.output[n] != nil {
			all.WriteString(r.output[n].String())
		}
	}
	return all.String()
}
