package report_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/lab/internal/report"
)

// The pictures of docs/rank.md and docs/workers.md: calls go through the real rank, or workers
// follow a load, under a virtual clock (packages ranksim and scalesim). The random numbers are
// always the same ones, and so is every byte, on one kind of processor. They measure no time of
// this machine, and nothing of the network, bytes or processor time of a real call.

var (
	draw  = flag.Bool("draw", false, "simulate the pictures of docs/rank.md and docs/workers.md again, in 4 minutes")
	title = regexp.MustCompile(`<title id="title">(.+)</title>`)
)

// maxPicture is what a picture may weigh, in bytes.
const maxPicture = 30_000

// effort is how much is simulated: what is drawn is the same with less, but more of it is chance.
type effort struct {
	calls  int // of each point of a line over the load
	seeds  int // how often so many, where chance is strong
	rounds int // with random numbers of their own, behind each line over time
}

// named is a line without points.
func named(label string, pen report.Pen) report.Line {
	return report.Line{Key: report.Key{Label: label, Pen: pen}}
}

// level is one that others are held against.
func level(label string, points ...[2]float64) report.Line {
	l := report.Line{Key: report.Key{Label: label, Pen: "gray", Dashed: true}}
	for _, at := range points {
		l.Add(at[0], at[1])
	}
	return l
}

// A little of everything gives pictures that are well-formed, small, and the
// same again; those in docs/img say the same, so they were drawn since the words
// were changed, and a page of docs shows them.
func TestPictures(t *testing.T) {
	docs := filepath.Join("..", "..", "..", "docs")
	for _, p := range []struct {
		name string
		page string // of docs, that shows it
		draw func(effort) report.Chart
	}{
		{"rank-policies.svg", "rank.md", policies},
		{"rank-overload.svg", "rank.md", overload},
		{"rank-shares.svg", "rank.md", shares},
		{"rank-slow.svg", "rank.md", slowWorker},
		{"scaling-step.svg", "workers.md", step},
		{"scaling-day.svg", "workers.md", day},
	} {
		file := filepath.Join(docs, "img", p.name)
		if *draw {
			testkit.Must(t, os.WriteFile(file, p.draw(effort{calls: 1_000_000, seeds: 4, rounds: 200}).SVG(), 0o644))
		}
		little := effort{calls: 300, seeds: 1, rounds: 1}
		drawn, shown := p.draw(little).SVG(), load(t, file)
		check(t, p.name, drawn)
		check(t, p.name+" of docs/img", shown)
		if !bytes.Equal(drawn, p.draw(little).SVG()) {
			t.Errorf("%s is another one at the second time", p.name)
		}
		if is, was := title.FindSubmatch(drawn), title.FindSubmatch(shown); is == nil || !slices.EqualFunc(is, was, bytes.Equal) {
			t.Errorf("%s of docs/img has another title than would be drawn: run make rank-plots", p.name)
		}
		if !strings.Contains(string(load(t, filepath.Join(docs, p.page))), "](img/"+p.name+")") {
			t.Errorf("docs/%s does not show %s", p.page, p.name)
		}
	}
}

func load(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	testkit.Must(t, err)
	return text
}

// check holds a picture against what every one is.
func check(t *testing.T, name string, text []byte) {
	t.Helper()
	if len(text) > maxPicture {
		t.Errorf("%s has %d bytes, more than %d", name, len(text), maxPicture)
	}
	if bytes.Contains(text, []byte("NaN")) || bytes.Contains(text, []byte("Inf")) {
		t.Errorf("%s has a place that is no number", name)
	}
	lines := 0
	for d := xml.NewDecoder(bytes.NewReader(text)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if start, ok := token.(xml.StartElement); ok && start.Name.Local == "path" && len(start.Attr) > 0 && strings.Contains(start.Attr[0].Value, " line") {
			lines++
		}
	}
	if lines < 2 {
		t.Errorf("%s has %d lines", name, lines)
	}
}
