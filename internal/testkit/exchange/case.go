package exchange

import (
	"crypto/rand"
	"embed"
	"encoding/hex"
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

//go:embed testdata/*.txt testdata/juggler.1/*.txt
var files embed.FS

// Case is one exchange.
type Case struct {
	// File and Name say which.
	File, Name string

	steps []step
}

// step is one line, without its marks.
type step struct {
	line   string // as it is in the file
	only   string // "old", "new", or "" for both
	socket int    // from 1
	verb   string // "server", "dial", ">", ">bin", "<", "~<", "*<", "ping", ...
	rest   string
}

// Cases returns all cases of juggler.0, in the order of their files.
func Cases(t testing.TB) []Case {
	t.Helper()
	return casesOf(t, "testdata")
}

// NewCases returns those of juggler.1, for servers of ours.
func NewCases(t testing.TB) []Case {
	t.Helper()
	return casesOf(t, "testdata/juggler.1")
}

func casesOf(t testing.TB, dir string) (all []Case) {
	t.Helper()
	entries, err := files.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if entry.IsDir() {
			continue
		}
		text, err := files.ReadFile(dir + "/" + entry.Name())
		if err != nil {
			t.Fatal(err)
		}
		cases, err := Parse(path.Base(entry.Name()), string(text))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, cases...)
	}
	return all
}

// Parse reads cases of a file of this name.
func Parse(file, text string) (cases []Case, err error) {
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimRight(line, "\n")
		name, isHead := strings.CutPrefix(line, "== ")
		switch {
		case isHead:
			cases = append(cases, Case{File: file, Name: name})
		case line == "" || strings.HasPrefix(line, "#"):
		case len(cases) == 0:
			return nil, fmt.Errorf("%s, line %d: before the first case", file, number)
		default:
			s, err := parseStep(line)
			if err != nil {
				return nil, fmt.Errorf("%s, line %d: %w", file, number, err)
			}
			last := &cases[len(cases)-1]
			last.steps = append(last.steps, s)
		}
	}
	return cases, nil
}

func stepForm() *regexp.Regexp {
	return regexp.MustCompile(`^(?:(old|new): )?(?:(\d) ?)?(server|dial|join|>bin|>|<bin|<|~<|\*<|ping|closed|close|quiet|break)(?: (.*))?$`)
}

func parseStep(line string) (step, error) {
	m := stepForm().FindStringSubmatch(line)
	if m == nil {
		return step{}, fmt.Errorf("no step: %q", line)
	}
	s := step{line: line, only: m[1], socket: 1, verb: m[3], rest: m[4]}
	if m[2] != "" {
		s.socket = int(m[2][0] - '0')
	}
	return s, nil
}

// vars are the ids of one run.
type vars map[string]string

// fill puts ids and fillings into a frame that is sent, or into a pattern.
func (v vars) fill(text string) string {
	text = regexp.MustCompile(`\$fill:\d+`).ReplaceAllStringFunc(text, func(s string) string {
		n, _ := strconv.Atoi(s[len("$fill:"):])
		return strings.Repeat("x", n)
	})
	return regexp.MustCompile(`\$[a-z]\b`).ReplaceAllStringFunc(text, func(name string) string {
		if v[name] == "" {
			v[name] = newID()
		}
		return v[name]
	})
}

func newID() string {
	var b [16]byte
	rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	h := hex.EncodeToString(b[:])
	return strings.Join([]string{h[:8], h[8:12], h[12:16], h[16:20], h[20:]}, "-")
}

// pattern matches what a line with placeholders expects.
func (v vars) pattern(text string) *regexp.Regexp {
	quoted := regexp.QuoteMeta(v.fill(text))
	quoted = strings.ReplaceAll(quoted, `\$uuid`, `[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`)
	quoted = strings.ReplaceAll(quoted, `\$number`, `[0-9]+`)
	quoted = strings.ReplaceAll(quoted, `\$text`, `[^"\\]*(?:\\.[^"\\]*)*`)
	quoted = strings.ReplaceAll(quoted, `\$bytes`, `(?:[0-9a-f]{2})*`)
	return regexp.MustCompile(`^` + quoted + `$`)
}

// Match reports whether text is what a text with placeholders expects, which may have
// several lines. ids are those of $a to $z; what is missing is drawn.
func Match(expected, text string, ids map[string]string) bool {
	return vars(ids).pattern(expected).MatchString(text)
}
