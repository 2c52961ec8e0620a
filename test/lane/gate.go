package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// mostLeaves is how many tests the lane may have, subtests counted and tests with
// subtests not.
const mostLeaves = 150

const module = "github.com/cabrank/cabrank"

// shownLines are those of a failure that the ledger shows.
const shownLines = 40

// goTest runs tests of the module in a folder by gotestsum, which prints them, and
// returns what they gave.
func goTest(ctx context.Context, out io.Writer, in, events string, args ...string) (*result, error) {
	if err := os.MkdirAll(filepath.Dir(events), 0o750); err != nil {
		return nil, err
	}
	events, err := filepath.Abs(events)
	if err != nil {
		return nil, err
	}
	tool, err := filepath.Abs(".tools/gotestsum")
	if err != nil {
		return nil, err
	}
	//nolint:gosec // what is run is a tool of the tree
	cmd := exec.CommandContext(ctx, tool, append([]string{"--format", "standard-quiet", "--jsonfile", events, "--", "-count=1"}, args...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = in, out, os.Stderr
	ended := cmd.Run()
	f, err := os.Open(events)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, err := readResult(f)
	if err == nil && ended != nil && r.passed() {
		return nil, fmt.Errorf("gotestsum: %w", ended)
	}
	return r, err
}

// passed tells whether nothing has failed.
func (r *result) passed() bool {
	for _, p := range r.packages {
		if p.failed {
			return false
		}
	}
	return len(r.failed) == 0
}

// gate runs the lane, two packages at a time, and what fails once more.
func gate(ctx context.Context, lane []promise, flags []string, out io.Writer) error {
	began := time.Now()
	r := newResult()
	for i, in := range modules() {
		args := slices.Concat(flags, []string{"-p", "2", "-timeout", "15m", "-run", pattern(lane)}, folders(lane, in))
		part, err := goTest(ctx, out, in, fmt.Sprintf("bin/lane/gate-%d.json", i+1), args...)
		if err != nil {
			return err
		}
		r.merge(part)
	}
	ledger, err := secondTries(ctx, r, lane, flags, out)
	if err != nil {
		return err
	}
	leaves := r.leaves()
	fmt.Fprint(out, ledger)
	fmt.Fprintf(out, "DONE %d tests, %d of them run again, in %.3fs\n", leaves, strings.Count(ledger, "\nFLAKE "), time.Since(began).Seconds())
	if leaves > mostLeaves {
		return fmt.Errorf("the lane has %d tests, at most %d are allowed: take some out of %s", leaves, mostLeaves, promisesFile)
	}
	return nil
}

// secondTries runs each test that has failed again, alone, and returns the ledger of
// those that pass then.
func secondTries(ctx context.Context, r *result, lane []promise, flags []string, out io.Writer) (ledger string, err error) {
	again, final := r.verdict()
	if final != "" {
		return "", errors.New(final)
	}
	var twice []string
	for i, n := range again {
		fmt.Fprintf(out, "lane: %s once more, alone\n", n)
		in, pkg := split(strings.TrimPrefix(strings.TrimPrefix(n.pkg, module), "/"))
		args := []string{"-timeout", "10m", "-run", pattern(of(lane, n)), pkg}
		second, err := goTest(ctx, out, in, fmt.Sprintf("bin/lane/again-%d.json", i+1), slices.Concat(flags, args)...)
		if err != nil {
			return "", err
		}
		if second.passed() {
			ledger += entry(n, r.said(n))
		} else {
			twice = append(twice, n.String())
		}
	}
	if len(twice) > 0 {
		return "", errors.New("failed twice: " + strings.Join(twice, ", "))
	}
	return ledger, nil
}

// of returns the part of the lane that is one test.
func of(lane []promise, n name) (part []promise) {
	for _, p := range lane {
		if n.pkg == path.Join(module, p.dir) && (name{test: p.test}).top().test == n.test {
			part = append(part, p)
		}
	}
	return part
}

// entry tells of a test that has failed, and passed when it was run again.
func entry(n name, said string) string {
	lines := strings.SplitAfter(said, "\n")
	if len(lines) > shownLines {
		lines = append(lines[:shownLines:shownLines], "    ...\n")
	}
	return fmt.Sprintf("\nFLAKE %s: failed, and passed when it was run again. Add a line to test/flakes.tsv; the first time it said:\n%s",
		n, strings.Join(lines, ""))
}
