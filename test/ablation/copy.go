package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// copied is a copy of the tree as the tag has it, which one diff at a time changes.
type copied struct {
	root string // of this tree
	in   string
}

// newCopy makes the copy, with what tests need that is not in the tree.
func newCopy(ctx context.Context) (c *copied, err error) {
	c = &copied{}
	if c.root, err = os.Getwd(); err != nil {
		return nil, err
	}
	if c.in, err = os.MkdirTemp("", "ablation-"); err != nil {
		return nil, err
	}
	if _, err = command(ctx, c.root, "git", "worktree", "add", "--detach", "--force", c.in, origin()); err != nil {
		return nil, err
	}
	for _, name := range []string{".deps", ".tools", "examples/node/node_modules"} {
		if _, err := os.Stat(name); err == nil {
			err = os.Symlink(filepath.Join(c.root, name), filepath.Join(c.in, name))
			if err != nil {
				return nil, err
			}
		}
	}
	return c, nil
}

func (c *copied) remove(ctx context.Context) {
	if _, err := command(context.WithoutCancel(ctx), c.root, "git", "worktree", "remove", "--force", c.in); err != nil {
		fmt.Fprintln(os.Stderr, "ablation:", err)
	}
}

// without makes the copy that of the tag, less one mechanism.
func (c *copied) without(ctx context.Context, m *mechanism) error {
	if _, err := command(ctx, c.in, "git", "checkout", "--quiet", "--force", "."); err != nil {
		return err
	}
	if m.name == base {
		return nil
	}
	_, err := command(ctx, c.in, "git", "apply", filepath.Join(c.root, folder, m.name+".diff"))
	return err
}

// command runs a program and returns what it prints.
func command(ctx context.Context, in string, line ...string) (string, error) {
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	var out bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = in, &out, &out
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s: %w\n%s", strings.Join(line, " "), err, out.String())
	}
	return out.String(), nil
}

// mostRounds bounds how often the compiler is asked what does not compile without what was
// cut before.
const mostRounds = 15

// cutTests takes out of the tests what does not compile without the mechanism: those are
// its own tests. It returns the names of those that were cut.
func (c *copied) cutTests(ctx context.Context, tags string, packages []string) (cut []string, err error) {
	for range mostRounds {
		said, failed := command(ctx, c.in, append([]string{"go", "test", "-vet=off", "-gcflags=-e", "-tags", tags, "-run", "^$"}, packages...)...)
		if failed == nil {
			return cut, nil
		}
		faults := faultsIn(said)
		if len(faults) == 0 {
			return cut, failed
		}
		for file, lines := range faults {
			names, err := cutFile(filepath.Join(c.in, file), lines)
			if err != nil {
				return cut, err
			}
			cut = append(cut, names...)
		}
	}
	return cut, errors.New("the tests do not compile, whatever is cut")
}

// compileFault matches what the compiler says of a test.
var compileFault = regexp.MustCompile(`(?m)^(\S+_test\.go):(\d+):\d+: `)

func faultsIn(said string) map[string][]int {
	faults := map[string][]int{}
	for _, m := range compileFault.FindAllStringSubmatch(said, -1) {
		line, _ := strconv.Atoi(m[2]) // digits alone
		faults[m[1]] = append(faults[m[1]], line)
	}
	return faults
}

// cutFile cuts the declarations of a file that have one of the lines, and returns the
// names of the tests among them.
func cutFile(name string, lines []int) (tests []string, err error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var parts []ast.Node
	for _, d := range file.Decls {
		g, grouped := d.(*ast.GenDecl)
		if !grouped || !g.Lparen.IsValid() {
			parts = append(parts, d)
			continue
		}
		for _, spec := range g.Specs {
			parts = append(parts, spec)
		}
	}
	for _, part := range slices.Backward(parts) {
		from, to := fset.Position(part.Pos()), fset.Position(part.End())
		if !slices.ContainsFunc(lines, func(at int) bool { return from.Line <= at && at <= to.Line }) {
			continue
		}
		if f, ok := part.(*ast.FuncDecl); ok && strings.HasPrefix(f.Name.Name, "Test") {
			tests = append(tests, f.Name.Name)
		}
		text = slices.Delete(text, from.Offset, to.Offset)
	}
	return tests, os.WriteFile(name, text, 0o600)
}
