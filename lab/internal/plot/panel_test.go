package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

func wellFormed(t *testing.T, text []byte) {
	t.Helper()
	for d := xml.NewDecoder(bytes.NewReader(text)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
	}
}

// A panel is well-formed whatever its words are, and says what was done and measured.
func TestPanel(t *testing.T) {
	c := Chart{
		Title: "a < b", Note: "n", X: Axis{Label: "x", To: 10, Ticks: []float64{0, 5, 10}},
		Y:      Axis{Label: "y", To: 100, Ticks: []float64{0, 100}, Format: func(float64) string { return "<v>" }},
		Events: []Band{{From: 2, To: 2, Label: "killed <1>"}, {From: 6, To: 8, Label: "slow"}},
		Lines: []Line{
			{Label: strings.Repeat("long", 10), Points: []Point{{0, 5}, {10, 90}}, Spans: []Span{{0, 3, 9}}, Dots: true},
			{Label: "nothing"}, {Label: "broken", Pen: Wine, Broken: true, Points: []Point{{10, 90}}},
		},
	}
	for _, size := range []Size{Wide, Narrow} {
		text := c.Panel(size)
		wellFormed(t, text)
		for _, want := range []string{"At 2: killed &lt;1&gt;. From 6 to 8: slow.", ": &lt;v&gt; at 0, &lt;v&gt; at 10.", `class="span"`, "<circle", `stroke-dasharray="6 5"`} {
			if !strings.Contains(string(text), want) {
				t.Errorf("no %q in\n%s", want, text)
			}
		}
		if named := strings.Contains(string(text), ">longlonglonglonglonglon…<"); named != (size == Wide) {
			t.Errorf("size %d: names at line ends: %v", size, named)
		}
	}
}

// A line is drawn where there are points: not over a gap, and not from its last point to its
// name. In words there is nothing either.
func TestGaps(t *testing.T) {
	gaps := Line{Label: "gaps"}
	gaps.Add(0, 10)
	gaps.Add(1, 20)
	gaps.Break()
	gaps.Add(4, 30)
	gaps.Break()
	c := Chart{X: Axis{To: 10, Ticks: []float64{0, 2, 4, 10}}, Y: Axis{To: 100}, Lines: []Line{gaps, {Label: "whole", Points: []Point{{0, 50}, {10, 50}}}}}
	if want := "gaps: 10 at 0, none at 2, 30 at 4, none at 10. whole: 50 at 0, 50 at 2,"; !strings.Contains(c.Words(), want) {
		t.Errorf("%s, want %s", c.Words(), want)
	}
	text := string(c.Panel(Wide))
	wellFormed(t, []byte(text))
	if n := strings.Count(text, "<polyline"); n != 3 {
		t.Errorf("%d lines, want two stretches and a whole one, in\n%s", n, text)
	}
	last, at := regexp.MustCompile(`class="lead" d="M([0-9.]+) `), drawing{Chart: c, left: 16, right: wideWidth - 14 - nameAfter - c.nameRoom()}
	for _, lead := range last.FindAllStringSubmatch(text, -1) {
		if x, _ := strconv.ParseFloat(lead[1], 64); x <= at.across(10) {
			t.Errorf("a name's leader begins at %v, in the chart, which ends at %v", x, at.across(10))
		}
	}
	if svg := c.SVG(); bytes.Count(svg, []byte("<polyline")) != 3 {
		t.Errorf("the gaps are closed in\n%s", svg)
	}
}

// What is not judged is drawn hollow, and said.
func TestMarked(t *testing.T) {
	l := Line{Label: "a", Dots: true}
	l.Add(1, 5)
	l.AddMarked(2, 6)
	c := Chart{X: Axis{To: 2, Ticks: []float64{2}}, Y: Axis{To: 10}, Lines: []Line{l}}
	if text := string(c.Panel(Wide)); strings.Count(text, `<circle class="hollow"`) != 1 || strings.Count(text, "<circle") != 2 || !strings.Contains(text, "5 at 1, 6 at 2 (not judged)") {
		t.Error(text)
	}
	b := Bars{X: Axis{To: 2}, Parts: []BarPart{{"p99", Accent}}, Rows: []Bar{{Label: "a", Values: []float64{1}, Marked: true}, {Label: "b", Values: []float64{1}}}}
	if text := string(b.Panel(Wide)); strings.Count(text, `<rect class="hollow"`) != 1 || !strings.Contains(text, "a: p99 1 (not judged). b: p99 1.") {
		t.Error(text)
	}
}

func TestBars(t *testing.T) {
	b := Bars{
		Title: "CPU", X: Axis{Label: "µs", To: 10, Ticks: []float64{0, 10}},
		Parts: []BarPart{{"callers", Accent}, {"workers", Wine}},
		Rows:  []Bar{{Label: "a & b", Values: []float64{2, 3}, Text: "5 µs"}, {Label: "c"}},
	}
	for _, size := range []Size{Wide, Narrow} {
		text := b.Panel(size)
		wellFormed(t, text)
		for _, want := range []string{">a &amp; b: 5 µs<", ">c<", "a &amp; b: callers 2, workers 3.", `class="pen1"><rect`} {
			if !strings.Contains(string(text), want) {
				t.Errorf("no %q in\n%s", want, text)
			}
		}
	}
}

func TestStrips(t *testing.T) {
	s := Strips{
		Title: "stopped", X: Axis{Label: "s", To: 4, Ticks: []float64{0, 4}}, Most: 10,
		Events: []Band{{From: 1, To: 2, Label: "stop <2>"}},
		Parts:  []BarPart{{"answered", Accent}, {"lost", Wine}},
		Rows:   []Strip{{Label: "a & b", Text: "all is well", Step: 1, Columns: [][]float64{{10, 0}, {5, 5}, {0, 20}}}, {Label: "c"}},
	}
	for _, size := range []Size{Wide, Narrow} {
		text := s.Panel(size)
		wellFormed(t, text)
		for _, want := range []string{
			">a &amp; b: all is well<", ">c<", "From 1 to 2: stop &lt;2&gt;. a &amp; b: all is well.",
			`class="pen1"><path class="area" d="M6 76V40H`, `class="pen0"><path class="area" d="M6 76V40H`, "V58H",
		} {
			if !strings.Contains(string(text), want) {
				t.Errorf("no %q in\n%s", want, text)
			}
		}
	}
}

func TestWithin(t *testing.T) {
	if got := within([]float64{90, 106}, 0, 100); got[0] != 84 || got[1] != 100 {
		t.Errorf("%v", got)
	}
	if got := within([]float64{-10, 300}, 0, 100); got[0] != 0 {
		t.Errorf("%v: what does not fit begins at the top", got)
	}
	if within(nil, 0, 1) != nil {
		t.Error("places of nothing")
	}
}
