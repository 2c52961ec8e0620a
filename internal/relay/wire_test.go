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
//	worker w1 2               an endpoint with two slots, and its connection
//	c > 1 call x-a=1          the caller c opens stream 1 and ends it
//	w1 < 1 call x-a=1         which has to come to w1 next
//	w1 > 1 head; data hi      two frames in one write
//	c < 1 head; data hi       and both have to come, in this order
//	c 3 > w1 5 call           written on stream 3 of c, and to be read on stream 5 of w1
//	after 5s                  time passes
//	counted worker_lost=0     a counter of the relay
//
// Line by line: "#" begins a comment. [a,b] in front of a line has it run in the variants
// a and b of the case alone, [!a] in all but a; [where:a] is a variant of another kind,
// and the case runs for each combination; "vary A x y" has $A stand for x in one variant and
// for y in another. "let A=words" has $A stand for words from there on. What is between "each S in 1 3 5", or "1..9 by 2", and "done" is repeated; so is what
// follows the rows "| 1 10s" of "each S TIME". Numbers may be sums of products: $S+2*1k.
//
// Verbs of frames are in wire_peer_test.go, all others in wire_relay_test.go. A word that
// is none fails the case, with its line.
func TestWire(t *testing.T) {
	files, _ := filepath.Glob("testdata/wire/*.txtar")
	for _, file := range files {
		for _, c := range wireCases(t, file) {
			subject := strings.TrimSuffix(filepath.Base(file), ".txtar")
			for _, variant := range c.variants() {
				t.Run(subject+"/"+c.name+"/"+strings.Join(slices.Sorted(maps.Values(variant)), ","), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { newWire(t).play(c, variant) })
				})
			}
		}
	}
}

type wireCase struct {
	name  string
	lines []wireLine
}

type wireLine struct{ at, text string }

var (
	wireName      = regexp.MustCompile(`^-- (.+) --$`)
	wireCondition = regexp.MustCompile(`^\[(?:(\w+):)?(!?)([^\]]+)\] *`)
	wireVariable  = regexp.MustCompile(`\$(\w+)`)
	wireWord      = regexp.MustCompile(`(?:[^\s";]|"(?:[^"\\]|\\.)*")+|;`)
	wireQuoted    = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
)

// wireCases reads a file. What stands under "-- use NAME --" is no case, but comes in place
// of each line "use NAME" below.
func wireCases(t *testing.T, file string) (cases []wireCase) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	parts := map[string][]wireLine{}
	name := "use nothing" // above the first case
	for i, line := range strings.Split(string(text), "\n") {
		if at := strings.Index(" "+line, " #"); at >= 0 {
			line = line[:at]
		}
		line = strings.TrimSpace(line)
		if m := wireName.FindStringSubmatch(line); m != nil {
			name = m[1]
			if parts[name] != nil {
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

// variants are the combinations of labels that the conditions of a case name, by kind.
func (c wireCase) variants() []map[string]string {
	labels, varied := map[string][]string{}, map[string]bool{}
	for _, l := range c.lines {
		if words := wireWord.FindAllString(l.text, -1); words[0] == "vary" {
			labels[words[1]], varied[words[1]] = words[2:], true
		}
	}
	for _, l := range c.lines {
		for m := wireCondition.FindStringSubmatch(l.text); m != nil; m = wireCondition.FindStringSubmatch(l.text) {
			for label := range strings.SplitSeq(m[3], ",") {
				if !varied[m[1]] && !slices.Contains(labels[m[1]], label) {
					labels[m[1]] = append(labels[m[1]], label)
				}
			}
			l.text = l.text[len(m[0]):]
		}
	}
	all := []map[string]string{{}}
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

// wire is a case that runs. As a testing.TB it names the line in every failure.
type wire struct {
	testing.TB
	at            string
	variant, vars map[string]string
	change        []func(*Options)
	g             *rig // from the first line on that needs it

	peers     map[string]*testkit.Peer
	conns     map[string]net.Conn // of workers
	endpoints map[string]*Endpoint
	sent      map[string]int64     // bytes that pours has sent, by peer and stream
	pings     map[string][][8]byte // that wait for an answer
	began     time.Time            // by "clock"
	hurry     chan struct{}        // ends the wait of a drain
	drained   func()
}

func newWire(t *testing.T) *wire {
	return &wire{
		TB: t, vars: map[string]string{}, peers: map[string]*testkit.Peer{}, conns: map[string]net.Conn{},
		endpoints: map[string]*Endpoint{}, sent: map[string]int64{}, pings: map[string][][8]byte{}, began: time.Now(),
	}
}

// Errorf fails the case and goes on.
func (w *wire) Errorf(format string, args ...any) {
	w.TB.Errorf("%s\n\t%s", w.at, fmt.Sprintf(format, args...))
}

// Fatalf fails the case and ends it.
func (w *wire) Fatalf(format string, args ...any) {
	w.TB.Fatalf("%s\n\t%s", w.at, fmt.Sprintf(format, args...))
}

// play runs the lines of one variant.
func (w *wire) play(c wireCase, variant map[string]string) {
	var lines []wireLine
next:
	for _, l := range c.lines {
		for m := wireCondition.FindStringSubmatch(l.text); m != nil; m = wireCondition.FindStringSubmatch(l.text) {
			if slices.Contains(strings.Split(m[3], ","), variant[m[1]]) == (m[2] == "!") {
				continue next
			}
			l.text = l.text[len(m[0]):]
		}
		lines = append(lines, l)
	}
	w.variant = variant
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
		case "vary":
			w.vars[words[1]] = w.unquote(w.variant[words[1]])
		case "each":
			body := lines[i+1:]
			depth := 1
			last := slices.IndexFunc(body, func(l wireLine) bool {
				if l.text == "done" {
					depth--
				} else if strings.HasPrefix(l.text, "each ") {
					depth++
				}
				return depth == 0
			})
			if last < 0 {
				w.Fatalf("each without done")
			}
			w.each(words[1:], body[:last])
			i += last + 1
		default:
			w.line(words)
		}
	}
}

// each runs lines once for each row of values.
func (w *wire) each(words []string, body []wireLine) {
	var rows [][]string
	names := words
	if len(words) > 2 && words[1] == "in" {
		names = words[:1]
		for _, word := range words[2:] {
			rows = append(rows, []string{word})
		}
		if first, last, ok := strings.Cut(words[2], ".."); ok {
			rows = nil
			step := int64(1)
			if len(words) == 5 {
				step = w.number(words[4])
			}
			for n := w.number(first); n <= w.number(last); n += step {
				rows = append(rows, []string{strconv.FormatInt(n, 10)})
			}
		}
	}
	for len(body) > 0 && strings.HasPrefix(body[0].text, "| ") {
		rows = append(rows, w.words(body[0].text)[1:])
		body = body[1:]
	}
	for _, row := range rows {
		if len(row) != len(names) {
			w.Fatalf("%d values for %v: %v", len(row), names, row)
		}
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

// number reads sums of products, of numbers with k and M behind them.
func (w *wire) number(text string) (sum int64) {
	for _, term := range regexp.MustCompile(`[+-]?[^+-]+`).FindAllString(text, -1) {
		product := int64(1)
		if term[0] == '-' {
			product = -1
		}
		for factor := range strings.SplitSeq(strings.TrimLeft(term, "+-"), "*") {
			if n, ok := map[string]int64{"max": lastID, "connWindow": connWindow, "enoughAnswers": enoughAnswers, "maxResets": maxResets, "maxComplaints": maxComplaints}[factor]; ok {
				product *= n
				continue
			}
			n, err := strconv.ParseInt(strings.TrimRight(factor, "kM"), 10, 64)
			if err != nil {
				w.Fatalf("%s is no number", text)
			}
			product *= n << (10 * (strings.Count(factor, "k") + 2*strings.Count(factor, "M")))
		}
		sum += product
	}
	return sum
}

// duration reads a time, or the name of a constant, less a part of it or times a number.
func (w *wire) duration(text string) time.Duration {
	if first, second, ok := strings.Cut(text, "+"); ok {
		return w.duration(first) + w.duration(second)
	}
	if first, second, ok := strings.Cut(text, "-"); ok {
		return w.duration(first) - w.duration(second)
	}
	if at := strings.LastIndex(text, "/"); at > 0 {
		return w.duration(text[:at]) / time.Duration(w.number(text[at+1:]))
	}
	if d, ok := map[string]time.Duration{
		"gatherFor": gatherFor, "gatherLonger": gatherLonger, "holdFor": holdFor, "firstBackOff": firstBackOff,
		"messageTime": messageTime, "trailersTime": trailersTime, "unheardFor": unheardFor, "dialTimeout": dialTimeout,
		"absentAfter": absentAfter, "keepAliveAnswer": keepAliveAnswer, "finalGoAway": finalGoAway, "stallEvery": stallEvery, "minKeyIdle": minKeyIdle,
	}[text]; ok {
		return d
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		w.Fatalf("%s is no time", text)
	}
	return d
}
