// Command ablation takes one mechanism after the other out of the product, and tells what
// is worse without it. bench/ablation/README.md says how to read what it writes.
//
//	go run ./test/ablation tests [NAME...]       which tests fail, and what the simulated bars come to
//	go run ./test/ablation faults [NAME...]      which tests with real processes fail
//	go run ./test/ablation workloads [FLAG...]   real processes; the flags are those of cabrank-lab run
//	go run ./test/ablation table                 writes the table of both
//
// Each diff of bench/ablation is applied to a copy of the tree as it was before the spine
// was rebuilt. Without names all are tried of which bench/out/ablation knows nothing yet.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

const (
	folder = "bench/ablation"
	// found is what came of the tests, by mechanism.
	found = "bench/out/ablation/tests.json"
)

// origin is the commit that the diffs apply to; ABLATION_BASE names another one.
func origin() string {
	return cmp.Or(os.Getenv("ABLATION_BASE"), "22b632c5f51f57f36d0fa8fe1e1786a5f8056815")
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "ablation:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("usage: go run ./test/ablation tests|faults|workloads|table")
	}
	all, err := readMechanisms()
	if err != nil {
		return err
	}
	switch args[0] {
	case "tests":
		return tryAll(ctx, all, unitTests(), args[1:])
	case "faults":
		return tryAll(ctx, all, faultTests(), args[1:])
	case "workloads":
		return work(ctx, all, args[1:])
	case "table":
		return writeTable(all)
	}
	return fmt.Errorf("%s: tests, faults, workloads or table is wanted", args[0])
}

// mechanism is one diff. Lines before it say what it takes out, and which tests with real
// processes have to do with it: "fault test: ./test/real/queue TestA|TestB".
type mechanism struct {
	name   string
	about  string
	faults [][2]string // package, expression
	lines  int         // of code that it costs, neither blank nor comment
	dirs   map[string]bool
}

// readMechanisms reads all diffs, those first that cost most.
func readMechanisms() (all []*mechanism, err error) {
	names, err := filepath.Glob(folder + "/*.diff")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		all = append(all, parseDiff(strings.TrimSuffix(filepath.Base(name), ".diff"), string(text)))
	}
	slices.SortStableFunc(all, func(a, b *mechanism) int { return cmp.Compare(b.lines, a.lines) })
	return all, nil
}

func parseDiff(name, text string) *mechanism {
	m := &mechanism{name: name, dirs: map[string]bool{}}
	head, diff, _ := strings.Cut(text, "diff --git ")
	for line := range strings.Lines(head) {
		line = strings.TrimSpace(line)
		if spec, ok := strings.CutPrefix(line, "fault test: "); ok {
			in, tests, _ := strings.Cut(spec, " ")
			m.faults = append(m.faults, [2]string{in, tests})
		} else {
			m.about = strings.TrimSpace(m.about + " " + line)
		}
	}
	for line := range strings.Lines("diff --git " + diff) {
		if rest, ok := strings.CutPrefix(line, "diff --git a/"); ok {
			file, _, _ := strings.Cut(rest, " ")
			m.dirs["./"+filepath.Dir(file)] = true
			continue
		}
		code := strings.TrimSpace(line[1:])
		switch {
		case code == "", strings.HasPrefix(code, "//"), strings.HasPrefix(line, "---"), strings.HasPrefix(line, "+++"):
		case line[0] == '-':
			m.lines++
		case line[0] == '+':
			m.lines--
		}
	}
	return m
}
