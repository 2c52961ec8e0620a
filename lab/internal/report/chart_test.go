package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

// A chart is well-formed whatever its words are, the same at every time, and tells in
// words what it shows.
func TestChart(t *testing.T) {
	rises, level := Line{Key: Key{Label: "rises", Pen: accent}}, Line{Key: Key{Label: "level", Pen: gray, Dashed: true}}
	for _, x := range []float64{0, 10} {
		rises.Add(x, 9*x)
		level.Add(x, 1234)
	}
	c := Chart{
		Title: `a < b & "c"`, Note: "of <nothing>",
		X:    Scale{Label: "x", To: 10, Ticks: []float64{0, 5, 10}, Percent: true},
		Y:    Scale{Label: "y", From: 1, To: 10_000, Ticks: []float64{1, 100, 10_000}, Log: true},
		Band: Event{From: 2, To: 4, Label: "then"}, Lines: []Line{rises, level},
	}
	text := c.SVG()
	if !bytes.Equal(text, c.SVG()) {
		t.Error("the second picture is another one")
	}
	for d := xml.NewDecoder(bytes.NewReader(text)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
	}
	testkit.Says(t, string(text),
		"rises: 0 at 0, 45 at 500, 90 at 1,000. level: 1,234 at 0,", "From 200 to 400: then. of &lt;nothing&gt;", "a &lt; b &amp;", `class="gray line dashed"`,
		`<text class="tick" x="24" y="407">of &lt;nothing&gt;</text>`, `<rect x="20%" width="20%" height="100%"`, "M0 1000h0L500 587L1000 511",
	)
}
