package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// maxPicture is what a picture may weigh, in bytes.
const maxPicture = 30_000

var title = regexp.MustCompile(`<title id="title">(.+)</title>`)

// A little of everything gives pictures that are well-formed, small, and the
// same again; those in docs/img say the same, so they were drawn since the words
// were changed, and a page of docs shows them.
func TestPictures(t *testing.T) {
	little := effort{calls: 300, seeds: 1, rounds: 1}
	once, again := t.TempDir(), t.TempDir()
	for _, folder := range []string{once, again} {
		if err := run(folder, little); err != nil {
			t.Fatal(err)
		}
	}
	docs := filepath.Join("..", "..", "..", "..", "docs")
	for _, p := range pictures() {
		drawn, shown := load(t, once, p.name), load(t, docs, "img", p.name)
		check(t, p.name, drawn)
		check(t, p.name+" of docs/img", shown)
		if !bytes.Equal(drawn, load(t, again, p.name)) {
			t.Errorf("%s is another one at the second time", p.name)
		}
		if is, was := title.FindSubmatch(drawn), title.FindSubmatch(shown); is == nil || !slices.EqualFunc(is, was, bytes.Equal) {
			t.Errorf("%s of docs/img has another title than would be drawn: run make rank-plots", p.name)
		}
		if !strings.Contains(string(load(t, docs, p.page)), "](img/"+p.name+")") {
			t.Errorf("docs/%s does not show %s", p.page, p.name)
		}
	}
}

func load(t *testing.T, path ...string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
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
		if start, ok := token.(xml.StartElement); ok && start.Name.Local == "polyline" {
			lines++
		}
	}
	if lines < 2 {
		t.Errorf("%s has %d lines", name, lines)
	}
}

func TestApart(t *testing.T) {
	for _, tc := range []struct{ wanted, want []float64 }{
		{nil, nil},
		{[]float64{0, 10, 30}, []float64{0, 10, 30}},
		{[]float64{5, 5}, []float64{0, 10}},
		{[]float64{0, 4, 12, 40}, []float64{-5 + 1.0/3, 5 + 1.0/3, 15 + 1.0/3, 40}},
	} {
		got := apart(tc.wanted, 10)
		if !slices.EqualFunc(got, tc.want, func(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 }) {
			t.Errorf("apart(%v) = %v, want %v", tc.wanted, got, tc.want)
		}
	}
}

func TestAxis(t *testing.T) {
	a := axis{from: 10, to: 1000, log: true}
	for v, want := range map[float64]float64{1: 0, 10: 0, 100: 0.5, 1000: 1, 5000: 1} {
		if got := a.part(v); got < want-1e-9 || got > want+1e-9 {
			t.Errorf("part(%v) = %v, want %v", v, got, want)
		}
	}
	if got := (axis{percent: true}).name(0.95); got != "95" {
		t.Errorf("95 %% is written %s", got)
	}
	if got := (axis{}).name(1234567); got != "1,234,567" {
		t.Errorf("1234567 is written %s", got)
	}
}
