package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// soak is the tag of the tests that start processes.
const soak = "soak"

const module = "github.com/cabrank/cabrank"

// tested are the packages whose tests are run, each with those whose change it feels.
func tested() [][]string {
	return [][]string{
		{"./internal/rank"},
		{"./internal/ranksim", "./internal/rank"},
		{"./internal/health"},
		{"./internal/health/check", "./internal/health"},
		{"./internal/stats", "./internal/rank", "./internal/health"},
		{"./internal/callers", "./internal/rank", "./internal/stats"},
		{"./internal/relay", "./internal/rank", "./internal/health", "./internal/grpcwire", "./internal/stats", "./internal/callers"},
		{"./internal/worker", "./internal/health", "./internal/health/check"},
	}
}

// result is what came of the tests without one mechanism.
type result struct {
	Error      string             `json:"error"`       // why it could not be tried
	Tests      float64            `json:"tests"`       // seconds that they took; 0: they were not run
	FaultTests float64            `json:"fault_tests"` // the same of those of faults
	Own        []string           `json:"own"`         // tests that do not compile without it
	Failed     []string           `json:"failed"`      // others that fail
	Bars       map[string]barSeen `json:"bars"`        // by bar, setting and measure
	Faults     []string           `json:"faults"`      // tests with real processes that fail
}

// barSeen is what one simulated bar came to.
type barSeen struct {
	Must  string  `json:"must"`
	Value float64 `json:"value"`
}

// base is the name of the result with all mechanisms.
const base = "all"

// step is what is run without each mechanism.
type step struct {
	run   func(*copied, context.Context, *mechanism, *result) error
	known func(*result) bool // it has been run
}

func unitTests() step {
	return step{(*copied).unitTests, func(r *result) bool { return r.Tests > 0 }}
}

func faultTests() step {
	return step{(*copied).faultTests, func(r *result) bool { return r.FaultTests > 0 }}
}

// tryAll takes a step without each of the mechanisms that are named, or else of all for
// which it was not taken yet.
func tryAll(ctx context.Context, all []*mechanism, s step, names []string) error {
	results, err := readResults()
	if err != nil {
		return err
	}
	c, err := newCopy(ctx)
	if err != nil {
		return err
	}
	defer c.remove(ctx)
	for _, m := range append([]*mechanism{everything(all)}, all...) {
		r := results[m.name]
		if r == nil {
			r = &result{}
			results[m.name] = r
		}
		if len(names) > 0 && !slices.Contains(names, m.name) || len(names) == 0 && s.known(r) {
			continue
		}
		began := time.Now()
		r.Error = ""
		if err := s.run(c, ctx, m, r); err != nil {
			r.Error, _, _ = strings.Cut(err.Error(), "\n")
			fmt.Fprintln(os.Stderr, err)
		}
		fmt.Fprintf(os.Stdout, "%-40s %4d lines, %3.0f s: %d own tests, %d others fail, %d fault tests fail %s\n",
			m.name, m.lines, time.Since(began).Seconds(), len(r.Own), len(r.Failed), len(r.Faults), r.Error)
		if err := writeResults(results); err != nil {
			return err
		}
	}
	return nil
}

// everything is no mechanism less.
func everything(all []*mechanism) *mechanism {
	m := &mechanism{name: base, dirs: map[string]bool{"./internal/rank": true, "./internal/health": true}}
	for _, of := range all {
		for _, f := range of.faults {
			if !slices.Contains(m.faults, f) {
				m.faults = append(m.faults, f)
			}
		}
	}
	return m
}

// unitTests runs the tests of the packages that the change reaches.
func (c *copied) unitTests(ctx context.Context, m *mechanism, r *result) (err error) {
	began := time.Now()
	if err := c.without(ctx, m); err != nil {
		return err
	}
	var packages []string
	for _, of := range tested() {
		if slices.ContainsFunc(of, func(p string) bool { return m.dirs[p] }) {
			packages = append(packages, of[0])
		}
	}
	r.Bars = map[string]barSeen{}
	if len(packages) > 0 {
		if r.Own, err = c.cutTests(ctx, "", packages); err != nil {
			return err
		}
		if r.Failed, err = c.goTest(ctx, r, "", packages, "."); err != nil {
			return err
		}
	}
	r.Tests = time.Since(began).Seconds()
	return nil
}

// faultTests runs the tests with real processes that the mechanism has to do with.
func (c *copied) faultTests(ctx context.Context, m *mechanism, r *result) error {
	began := time.Now()
	if len(m.faults) == 0 {
		return nil
	}
	if err := c.without(ctx, m); err != nil {
		return err
	}
	if _, err := command(ctx, c.in, "go", "build", "-o", "bin/cabrank", "./cmd/cabrank"); err != nil {
		return err
	}
	r.Faults = nil
	for _, f := range m.faults {
		if _, err := c.cutTests(ctx, soak, []string{f[0]}); err != nil {
			return err
		}
		failed, err := c.faultTest(ctx, r, f)
		if err != nil {
			return err
		}
		r.Faults = append(r.Faults, failed...)
	}
	r.FaultTests = time.Since(began).Seconds()
	return nil
}

// faultTest runs tests of faults, and those that fail once more: only what fails twice has
// to do with the mechanism.
func (c *copied) faultTest(ctx context.Context, r *result, f [2]string) (failed []string, err error) {
	for range 2 {
		failed, err = c.goTest(ctx, r, soak, []string{f[0]}, "^("+f[1]+")$")
		if err != nil || len(failed) == 0 {
			return nil, err
		}
	}
	return failed, nil
}

// event is a line of `go test -json`.
type event struct {
	Action  string `json:"Action"`
	Package string `json:"Package"`
	Test    string `json:"Test"`
	Output  string `json:"Output"`
}

// goTest runs tests and returns those that fail, without those of which a part fails. Bars
// that are printed are noted.
func (c *copied) goTest(ctx context.Context, r *result, tags string, packages []string, pattern string) (failed []string, err error) {
	args := append([]string{"go", "test", "-json", "-count=1", "-vet=off", "-gcflags=-e", "-timeout", "3m", "-tags", tags, "-run", pattern}, packages...)
	said, _ := command(ctx, c.in, args...) // the events say whether it failed
	lines := bufio.NewScanner(strings.NewReader(said))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue
		}
		r.noteBar(e.Output)
		if e.Action == "fail" {
			in := strings.TrimPrefix(e.Package, module+"/")
			failed = append(failed, strings.TrimSuffix(in+" "+e.Test, " "))
		}
	}
	slices.Sort(failed)
	return leaves(failed), lines.Err()
}

// leaves are the tests and packages that fail by themselves, not because a part of them does.
func leaves(sorted []string) (kept []string) {
	for i, name := range sorted {
		if i+1 < len(sorted) && (strings.HasPrefix(sorted[i+1], name+"/") || strings.HasPrefix(sorted[i+1], name+" ")) {
			continue
		}
		kept = append(kept, name)
	}
	return kept
}

// noteBar notes a line of the table of package ranksim: bar, setting, measure, limit, worst.
func (r *result) noteBar(line string) {
	cells := strings.Split(line, " | ")
	if len(cells) < 6 || !strings.HasPrefix(line, "| ") {
		return
	}
	var v float64
	if _, err := fmt.Sscan(cells[4], &v); err == nil {
		r.Bars[strings.TrimPrefix(cells[0], "| ")+", "+cells[1]+": "+cells[2]] = barSeen{cells[3], v}
	}
}

func readResults() (map[string]*result, error) {
	results := map[string]*result{}
	text, err := os.ReadFile(found)
	if errors.Is(err, fs.ErrNotExist) {
		return results, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &results)
	}
	return results, err
}

func writeResults(results map[string]*result) error {
	text, err := json.MarshalIndent(results, "", " ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(found), 0o750); err != nil {
		return err
	}
	return os.WriteFile(found, append(text, '\n'), 0o600)
}
