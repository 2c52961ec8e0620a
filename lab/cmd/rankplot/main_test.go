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
	docs := filepath.Join("..", "..", "..", "docs")
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
		if start, ok := token.(xml.StartElement); ok && start.Name.Local == "path" && len(start.Attr) > 0 && strings.Contains(start.Attr[0].Value, " line") {
			lines++
		}
	}
	if lines < 2 {
		t.Errorf("%s has %d lines", name, lines)
	}
}
