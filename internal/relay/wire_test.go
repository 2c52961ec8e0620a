package relay

import (
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

// TestWire runs the scripts of testdata/wire: what callers and workers write and have to
// read, in virtual time, and what becomes of the relay between them. A file is about one
// subject; each case in it, from "-- its name --", has a relay of its own.
//
//	worker w1 2               an endpoint with two slots, and its connection; a case that names w1
//	                          and does not bring it in has it from the beginning, with one slot
//	c > 1 call x-a=1          the caller c opens stream 1 and ends it
//	w1 < 1 call x-a=1         which has to come to w1 next
//	w1 > 1 head; data hi      two frames in one write
//	c < 1 head; data hi       and both have to come, in this order
//	c 3 > w1 5 call           written on stream 3 of c, and to be read on stream 5 of w1
//	c 3 <> w1 5 call          the same, and the reply comes back
//	local l                   a caller in this process
//	http1 h                   a caller over HTTP/1
//	h > get /                 asks for a page
//	h < 200 "text"; end       and has it, and the end of its connection
//	after 5s                  time passes
//	counted worker_lost=0     a counter of the relay
//
// Line by line: "#" begins a comment. [a,b] in front of a line has it run in the variants a
// and b of the case alone, [!a] in all but a; [kind:a] is one of other variants, and the case
// runs for each combination. "vary A x y" has $A stand for x in one variant and for y in
// another, "let A=words" for words from there on, and "table PAGE A B C" takes the labels from
// the cells of a table of docs. What is between "each S in 1 3 5", or
// "1..9 by 2", and "done" is repeated, or for the rows "| 1 10s" below "each S TIME". Numbers
// may be sums and products. Verbs of frames are in wire_peer_test.go, all others in
// wire_relay_test.go; a word that is none fails the case.
func TestWire(t *testing.T) {
	files, _ := filepath.Glob("testdata/wire/*.txtar")
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			for _, c := range wireCases(t, file) {
				t.Run(c.name, func(t *testing.T) {
					for _, variant := range c.variants(t) {
						play := func(t *testing.T) {
							t.Helper()
							synctest.Test(t, func(t *testing.T) { newWire(t).play(c, variant) })
						}
						if name := strings.Join(slices.Sorted(maps.Values(variant)), ","); name != "" {
							t.Run(name, play)
							continue
						}
						play(t)
					}
				})
			}
		})
	}
}

type wireCase struct {
	name  string
	lines []wireLine
}

type wireLine struct{ at, text string }

func (l wireLine) namesW1() bool  { return wireNamesW1.MatchString(l.text) }
func (l wireLine) bringsW1() bool { return wireBringsW1.MatchString(l.text) }

var (
	wireCondition = regexp.MustCompile(`^\[(?:(\w+):)?(!?)([^\]]+)\] *`)
	wireVariable  = regexp.MustCompile(`\$(\w+)`)
	wireWord      = regexp.MustCompile(`(?:[^\s";]|"(?:[^"\\]|\\.)*")+|;`)
	wireNamesW1   = regexp.MustCompile(`\bw1\b`)
	wireBringsW1  = regexp.MustCompile(`\b(worker|attach|servant|up \S+) (w1\b|w?\$)`)
	wireQuoted    = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
)

// wireCases reads a file. What stands under "-- use NAME --" is no case, but comes in place
// of each line "use NAME" below.
func wireCases(t *testing.T, file string) (cases []wireCase) {
	t.Helper()
	text, err := os.ReadFile(file)
	testkit.Must(t, err)
	parts := map[string][]wireLine{}
	name := "-" // above the first case
	for i, line := range strings.Split(string(text), "\n") {
		line, _, _ = strings.Cut(" "+line, " #")
		line = strings.TrimSpace(line)
		if next, ok := strings.CutPrefix(line, "-- "); ok {
			if name = strings.TrimSuffix(next, " --"); parts[name] != nil {
				t.Fatalf("%s: two cases %s", file, name)
			}
			if !strings.HasPrefix(name, "use ") {
				cases = append(cases, wireCase{name: name})
			}
		} else if used, ok := parts[line]; ok && line != name {
			parts[name] = append(parts[name], used...)
		} else if line != "" {
			parts[name] = append(parts[name], wireLine{fmt.Sprintf("%s:%d: %s", file, i+1, line), line})
		}
	}
	for i := range cases {
		cases[i].lines = parts[cases[i].name]
	}
	return cases
}

// conditions takes them from the front of a line: kind, "!" or nothing, labels.
func (l *wireLine) conditions() (all [][]string) {
	for m := wireCondition.FindStringSubmatch(l.text); m != nil; m = wireCondition.FindStringSubmatch(l.text) {
		l.text = l.text[len(m[0]):]
		all = append(all, m[1:])
	}
	return all
}

// variants are the combinations of labels that the conditions of a case name, by kind; of
// what varies the labels are the values.
func (c wireCase) variants(t *testing.T) []map[string]string {
	t.Helper()
	labels, named := map[string][]string{}, map[string][]string{}
	all, table := []map[string]string{{}}, []string{}
	for _, l := range c.lines {
		for _, m := range l.conditions() {
			named[m[0]] = append(named[m[0]], strings.Split(m[2], ",")...)
		}
		switch words := wireWord.FindAllString(l.text, -1); words[0] {
		case "vary":
			labels[words[1]] = words[2:]
		case "table":
			table = words[2:]
			all = wireTable(t, words[1], table)
		}
	}
	for kind, names := range named {
		slices.Sort(names)
		names = slices.Compact(names)
		if slices.Contains(table, kind) {
			wantLabels(t, kind, all, names)
		} else if labels[kind] == nil {
			labels[kind] = names
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(labels)) {
		var more []map[string]string
		for _, v := range all {
			for _, label := range labels[kind] {
				one := maps.Clone(v)
				one[kind] = label
				more = append(more, one)
			}
		}
		all = more
	}
	return all
}

// wireTable reads the table of a page that begins with "A call that": a variant for each cell, with
// its row, its column and what is in it.
func wireTable(t *testing.T, page string, kinds []string) (cells []map[string]string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/" + page)
	testkit.Must(t, err)
	_, below, _ := strings.Cut(string(text), "\n| A call that ")
	head, below, _ := strings.Cut(below, "\n")
	columns := strings.Split(strings.Trim(head, "| "), " | ")
	for _, line := range strings.Split(below, "\n")[1:] {
		row := strings.Split(strings.Trim(line, "| "), " | ")
		if len(row) != len(columns)+1 {
			break
		}
		for i, cell := range row[1:] {
			if cell != "–" {
				cells = append(cells, map[string]string{kinds[0]: row[0], kinds[1]: columns[i], kinds[2]: cell})
			}
		}
	}
	return cells
}

// wantLabels wants the labels of a kind in a script to be those in its table.
func wantLabels(t *testing.T, kind string, cells []map[string]string, names []string) {
	t.Helper()
	var there []string
	for _, cell := range cells {
		there = append(there, cell[kind])
	}
	slices.Sort(there)
	if there = slices.Compact(there); !slices.Equal(there, names) {
		t.Fatalf("%s: the table has %q, the script %q", kind, there, names)
	}
}

// wire is a case that runs. As a testing.TB it names the line in every failure.
type wire struct {
	testing.TB
	at            string
	variant, vars map[string]string
	change        []func(*Options)
	bringsW1      bool // with the rig
	g             *rig // from the first line on that needs it

	peers     map[string]*testkit.Peer
	conns     map[string]net.Conn // of workers
	endpoints map[string]*Endpoint
	locals    map[string]*wireLocal
	http1s    map[string]*http1Caller
	guests    []*Guest
	servant   *goodWorker
	release   chan struct{} // a handler waits for it
	auth      *tokens
	tls       wireTLS
	pings     map[string][][8]byte // that wait for an answer
	began     time.Time            // by "clock"
	hurry     chan struct{}        // ends the wait of a drain
	drained   func()
	log       logLines
	told      []wireTold
}

// wireTold is what the access log has of a call.
type wireTold struct {
	Access

	Path string
}

func newWire(t *testing.T) *wire {
	t.Helper()
	return &wire{
		TB: t, vars: map[string]string{}, peers: map[string]*testkit.Peer{}, conns: map[string]net.Conn{},
		endpoints: map[string]*Endpoint{}, locals: map[string]*wireLocal{}, http1s: map[string]*http1Caller{},
		release: make(chan struct{}), pings: map[string][][8]byte{}, began: time.Now(),
	}
}

// Errorf names the line.
func (w *wire) Errorf(format string, args ...any) {
	w.TB.Errorf("%s\n\t%s", w.at, fmt.Sprintf(format, args...))
}

// Fatalf names the line.
func (w *wire) Fatalf(format string, args ...any) {
	w.TB.Fatalf("%s\n\t%s", w.at, fmt.Sprintf(format, args...))
}

// play runs the lines of one variant.
func (w *wire) play(c wireCase, variant map[string]string) {
	w.variant = variant
	var lines []wireLine
	w.bringsW1 = slices.ContainsFunc(c.lines, wireLine.namesW1) && !slices.ContainsFunc(c.lines, wireLine.bringsW1)
	for _, l := range c.lines {
		if !slices.ContainsFunc(l.conditions(), func(m []string) bool {
			return slices.Contains(strings.Split(m[2], ","), variant[m[0]]) == (m[1] == "!")
		}) {
			lines = append(lines, l)
		}
	}
	w.run(lines)
	w.at = c.name + ", at its end"
}

func (w *wire) run(lines []wireLine) {
	for i := 0; i < len(lines); i++ {
		w.at = lines[i].at
		words := w.words(lines[i].text)
		switch words[0] {
		case "let":
			for _, word := range words[1:] {
				name, value, _ := strings.Cut(word, "=")
				w.vars[name] = w.unquote(value)
			}
		case "table":
		case "vary":
			w.vars[words[1]] = w.unquote(w.variant[words[1]])
		case "each":
			last, depth := 0, 1
			for depth > 0 {
				if last++; i+last == len(lines) {
					w.Fatalf("each without done")
				}
				if text := lines[i+last].text; text == "done" {
					depth--
				} else if strings.HasPrefix(text, "each ") {
					depth++
				}
			}
			w.each(words[1:], lines[i+1:i+last])
			i += last
		default:
			w.line(words)
		}
	}
}

// each runs lines once for each row of values.
func (w *wire) each(names []string, body []wireLine) {
	var rows [][]string
	if len(names) > 2 && names[1] == "in" {
		values := names[2:]
		if first, last, ok := strings.Cut(values[0], ".."); ok {
			step := w.number(append(values, "", "1")[2])
			values = nil
			for n := w.number(first); n <= w.number(last); n += step {
				values = append(values, strconv.FormatInt(n, 10))
			}
		}
		for _, value := range values {
			rows = append(rows, []string{value})
		}
		names = names[:1]
	}
	for ; len(body) > 0 && strings.HasPrefix(body[0].text, "| "); body = body[1:] {
		rows = append(rows, w.words(body[0].text)[1:])
	}
	if len(rows) == 0 {
		w.Fatalf("each without rows")
	}
	for _, row := range rows {
		for i, name := range names {
			w.vars[name] = w.unquote(row[i])
		}
		w.run(body)
	}
}

// words cuts a line; what is quoted stays so.
func (w *wire) words(line string) []string {
	line = wireVariable.ReplaceAllStringFunc(line, func(name string) string {
		value, ok := w.vars[name[1:]]
		if !ok {
			w.Fatalf("%s is nothing", name)
		}
		return value
	})
	return wireWord.FindAllString(line, -1)
}

// unquote takes the quotes from the parts of a word that have some.
func (w *wire) unquote(word string) string {
	return wireQuoted.ReplaceAllStringFunc(word, func(quoted string) string {
		text, err := strconv.Unquote(quoted)
		if err != nil {
			w.Fatalf("%s: %v", quoted, err)
		}
		return text
	})
}

// number reads numbers, times in nanoseconds and names of constants, with + - * / between.
func (w *wire) number(text string) int64 {
	for _, operators := range []string{"+-", "*/"} { // the operator that binds least comes last
		if at := strings.LastIndexAny(text, operators); at > 0 {
			x, y := w.number(text[:at]), w.number(text[at+1:])
			return map[byte]func() int64{
				'+': func() int64 { return x + y }, '-': func() int64 { return x - y },
				'*': func() int64 { return x * y }, '/': func() int64 { return x / y },
			}[text[at]]()
		}
	}
	if n, ok := wireConstants()[text]; ok {
		return n
	}
	if d, err := time.ParseDuration(text); err == nil {
		return int64(d)
	}
	n, err := strconv.ParseInt(strings.TrimRight(text, "kM"), 10, 64)
	if err != nil {
		w.Fatalf("%s is no number", text)
	}
	return n << (10 * (strings.Count(text, "k") + 2*strings.Count(text, "M")))
}

func (w *wire) duration(text string) time.Duration { return time.Duration(w.number(text)) }
