//go:build real || soak

package packages_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

// example is one heading of a page with what stands below it, to be played on a machine
// of its own. The comment at the top of docs/install.md is the definition.
type example struct {
	heading string
	blocks  []block
}

// block is a fenced block that is a file or has lines to type.
type block struct {
	path    string // of a file, else empty
	content string // of a file
	running bool   // the last of the steps goes on until the end of the example
	steps   []step
}

// step is a command, and lines that it has to print, in this order. A "…" in one of them
// is any text.
type step struct {
	command string
	prints  []string
}

// heading matches one; anything in front of the name is its level.
var heading = regexp.MustCompile(`^#{1,6} (.+)$`)

// readPage returns the examples of a page that have something to type.
func readPage(t *testing.T, name string) []example {
	t.Helper()
	text := testkit.ReadFile(t, name)
	var (
		all    []example
		now    example
		fence  []string // nil: outside of a block
		inside strings.Builder
	)
	for line := range strings.Lines(string(text) + "\n# End\n") {
		line = strings.TrimSuffix(line, "\n")
		m := heading.FindStringSubmatch(line)
		switch {
		case fence == nil && strings.HasPrefix(line, "```"):
			fence = append(strings.Fields(line[3:]), "", "")
			inside.Reset()
		case fence != nil && line == "```":
			b, err := readBlock(fence[0], fence[1], inside.String())
			testkit.Need(t, err == nil, "%s, %s: %v", name, now.heading, err)
			now.blocks = append(now.blocks, b)
			fence = nil
		case fence != nil:
			inside.WriteString(line + "\n")
		case m != nil:
			if now.typed() {
				all = append(all, now)
			}
			now = example{heading: m[1]}
		}
	}
	return all
}

func (e example) typed() bool {
	for _, b := range e.blocks {
		if len(b.steps) > 0 {
			return true
		}
	}
	return false
}

// text is all that the example says, to look for the packages that it names.
func (e example) text() string {
	var all strings.Builder
	for _, b := range e.blocks {
		all.WriteString(b.content)
		for _, s := range b.steps {
			all.WriteString(s.command + "\n" + strings.Join(s.prints, "\n") + "\n")
		}
	}
	return all.String()
}

// readBlock reads what is between two fences, the first of which had the two words.
func readBlock(language, word, content string) (block, error) {
	switch {
	case language == "console":
		steps, err := readSteps(content)
		return block{running: word == "running", steps: steps}, err
	case word != "":
		return block{path: word, content: content}, nil
	}
	return block{}, nil
}

func readSteps(content string) ([]step, error) {
	var steps []step
	for line := range strings.Lines(content) {
		line = strings.TrimRight(line, "\n")
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			steps = append(steps, step{command: command})
			continue
		}
		if len(steps) == 0 {
			return nil, fmt.Errorf("the first line of a console is %q; it has to begin with \"$ \"", line)
		}
		last := &steps[len(steps)-1]
		if more, ok := strings.CutPrefix(line, "> "); ok {
			last.command += "\n" + more
		} else {
			last.prints = append(last.prints, line)
		}
	}
	return steps, nil
}

// missing returns the first of the lines that is not in what was printed, in their
// order.
func (s step) missing(printed string) string {
	lines := strings.Split(printed, "\n")
	for _, want := range s.prints {
		form := regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(want), "…", ".*") + "$")
		for len(lines) > 0 && !form.MatchString(strings.TrimRight(lines[0], " \r")) {
			lines = lines[1:]
		}
		if len(lines) == 0 {
			return want
		}
		lines = lines[1:]
	}
	return ""
}
