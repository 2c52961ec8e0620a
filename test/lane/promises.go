package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// promisesFile has a line for each promise: its words, the folder of the package, and
// the test that holds it, with a subtest's name maybe, separated by tabs.
const promisesFile = "test/promises.tsv"

var realTag = regexp.MustCompile(`(?m)^//go:build .*\breal\b`)

// promise is one line of it that a real test holds.
type promise struct{ dir, test string }

// readPromises returns the tests of the lane, each of which exists. Promises that are
// held without a process are none of them: `make test-unit` runs their tests.
func readPromises(name string) (lane []promise, err error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(fields) != 3 {
			return nil, fmt.Errorf("%s: three fields are wanted, separated by tabs: %q", name, line)
		}
		p := promise{dir: fields[1], test: fields[2]}
		in, err := isReal(p.dir, p.test)
		if err != nil {
			return nil, err
		}
		if in && !slices.Contains(lane, p) {
			lane = append(lane, p)
		}
	}
	if len(lane) == 0 {
		return nil, fmt.Errorf("%s names no test", name)
	}
	return lane, nil
}

// isReal tells whether a test is in a file with the tag of the lane.
func isReal(dir, test string) (bool, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		return false, err
	}
	test, _, _ = strings.Cut(test, "/")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return false, err
		}
		if strings.Contains(string(text), "\nfunc "+test+"(") {
			return realTag.Match(text), nil
		}
	}
	return false, fmt.Errorf("%s: %s has no %s", promisesFile, dir, test)
}

// pattern is what `go test -run` takes for tests.
func pattern(tests []promise) string {
	var all []string
	for _, p := range tests {
		var parts []string
		for part := range strings.SplitSeq(p.test, "/") {
			parts = append(parts, "^"+regexp.QuoteMeta(part)+"$")
		}
		all = append(all, strings.Join(parts, "/"))
	}
	return strings.Join(all, "|")
}

// folders lists the packages of tests of one module, as `go test` takes them in its
// folder, each once.
func folders(tests []promise, in string) (all []string) {
	for _, p := range tests {
		if of, dir := split(p.dir); of == in && !slices.Contains(all, dir) {
			all = append(all, dir)
		}
	}
	return all
}

// modules are the folders of the modules whose tests start processes.
func modules() []string { return []string{".", "lab"} }

// split returns the folder of the module that a package is in, and the package as
// `go test` takes it there. The package of the root is "".
func split(dir string) (in, pkg string) {
	for _, in := range modules() {
		if rest, found := strings.CutPrefix(dir, in+"/"); found {
			return in, "./" + rest
		}
	}
	return ".", "./" + dir
}
