package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
)

// A picture is well-formed whatever its words are, the same at every time, and tells
// in words what it shows.
func TestSVG(t *testing.T) {
	c := Chart{
		Title: "a < b & \"c\"", Note: "of <nothing>",
		X: Axis{Label: "x", To: 10, Ticks: []float64{0, 5, 10}}, Y: Axis{Label: "y", To: 100, Ticks: []float64{0, 100}},
		Band:  Band{From: 2, To: 4, Label: "then"},
		Lines: []Line{{Label: "rises", Pen: Accent, Points: []Point{{0, 0}, {10, 90}}}, {Label: "level", Pen: Dashed, At: 3}},
	}
	c.Lines[1].Add(0, 50)
	c.Lines[1].Add(10, 50)
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
	for _, want := range []string{"rises: 0 at 0, 90 at 5, 90 at 10.", "From 2 to 4: then.", "a &lt; b &amp;", `stroke-dasharray="5 5"`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q in\n%s", want, text)
		}
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
	a := Axis{From: 10, To: 1000, Log: true}
	for v, want := range map[float64]float64{1: 0, 10: 0, 100: 0.5, 1000: 1, 5000: 1} {
		if got := a.part(v); got < want-1e-9 || got > want+1e-9 {
			t.Errorf("part(%v) = %v, want %v", v, got, want)
		}
	}
	if got := (Axis{Percent: true}).name(0.95); got != "95" {
		t.Errorf("95 %% is written %s", got)
	}
	if got := (Axis{}).name(1234567); got != "1,234,567" {
		t.Errorf("1234567 is written %s", got)
	}
}
