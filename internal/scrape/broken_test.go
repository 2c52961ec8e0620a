package scrape

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

// Pages that are broken in some way end neither the process nor other pages. What
// stands in front of the fault counts (D29, D30).
func TestBrokenPages(t *testing.T) {
	for _, c := range []struct {
		name, page, want string
		line             int // of the fault; 0: there is none
	}{
		{"no HELP and no TYPE", "m 1\n", "m{worker=\"w\"} 1\n", 0},
		{"HELP without a text", "# HELP m\n# TYPE m gauge\nm 1\n", "m 1\n", 0},
		{"TYPE behind its sample", "m 1\n# TYPE m gauge\n", "m 1\n", 0},
		{"comma and quote in a value", `m{a="1,2",b="\""} 1`, `m{a="1,2",b="\"",worker="w"} 1` + "\n", 0},
		{"brace in a value", `m{a="}"} 1`, `m{a="}",worker="w"} 1` + "\n", 0},
		{"empty value", `m{a=""} 1`, "m{worker=\"w\"} 1\n", 0},
		{"comma behind the last label", `m{a="1",} 1`, `m{a="1",worker="w"} 1` + "\n", 0},
		{"timestamp", "# TYPE m gauge\nm 1 1700000000000\n", "m 1\n", 0},
		{"NaN", "# TYPE m gauge\nm NaN\n", "m NaN\n", 0},
		{"no UTF-8", "# TYPE m gauge\nm{a=\"\xff\"} 1\n", "m{a=\"\uFFFD\"} 1\n", 0},
		{"twice", "# TYPE m gauge\nm 1\nm 2\n", "m 1\n", 0},
		{"twice in another order", "# TYPE m gauge\nm{a=\"1\",b=\"2\"} 1\nm{b=\"2\",a=\"1\"} 2\n", "m{a=\"1\",b=\"2\"} 1\n", 0},
		{"label twice", "# TYPE m gauge\nm{a=\"1\",a=\"2\"} 1\nn 1\n", "n{worker=\"w\"} 1\n", 0},
		{"bound that is none", "# TYPE h histogram\nh_bucket{le=\"x\"} 1\nh_count 1\n", "h_bucket{le=\"+Inf\"} 1\nh_sum 0\nh_count 1\n", 0},
		{"no value", "# TYPE m gauge\nm 1\nn\nm{a=\"1\"} 2\n", "m 1\n", 3},
		{"no number", "# TYPE m gauge\nm 1\n\nn x\n", "m 1\n", 4},
		{"no end of a label", "# TYPE m gauge\nm 1\nn{a=\"1\n", "m 1\n", 3},
		{"histogram cut", "# TYPE m gauge\nm 1\n# TYPE h histogram\nh_bucket{le=\"1\"} 1\n???", "h_bucket{le=\"1\"} 1\nh_bucket{le=\"+Inf\"} 1\nh_sum 0\nh_count 1\nm 1\n", 5},
		{"binary", "\x00\x01\x02", "", 1},
		{"HTML", "<html>\n", "", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := NewStore(Options{})
			err := s.Join("w").ReadText([]byte(c.page))
			fault, broken := errors.AsType[*PageError](err)
			if broken != (c.line > 0) || broken && fault.Line != c.line {
				t.Errorf("error is %v", err)
			}
			expect(t, s, c.want)
		})
	}
}

// A histogram that a fault has cut stays as it was: its parts belong together.
func TestFaultInHistogram(t *testing.T) {
	s := NewStore(Options{})
	p := s.Join("w")
	read(t, p, "# TYPE h histogram\nh_bucket{le=\"1\"} 1\nh_bucket{le=\"+Inf\"} 2\nh_sum 3\nh_count 2\n")
	testkit.Want(t, p.ReadText([]byte("# TYPE h histogram\nh_bucket{le=\"1\"} 9\n!")) != nil, "no error")
	expect(t, s, "h_bucket{le=\"1\"} 1\nh_bucket{le=\"+Inf\"} 2\nh_sum 3\nh_count 2\n")
}

// A process that shows other series each time takes no more than its share.
func TestSeriesAreBounded(t *testing.T) {
	s := NewStore(Options{})
	p := s.Join("w")
	n := 0
	for range 8 {
		var page strings.Builder
		page.WriteString("# TYPE g gauge\n")
		for range mostPageSeries / 2 {
			n++
			fmt.Fprintf(&page, "g{n=\"%d\"} 1\n", n)
		}
		read(t, p, page.String())
	}
	if series := s.Stats().Series; series > mostPageSeries || len(p.series) > mostPageSeries || len(p.items) > mostPageSeries {
		t.Errorf("%d series, %d known, %d items", series, len(p.series), len(p.items))
	}
	if got := samples(shown(t, s)); strings.Count(got, "\n") != mostPageSeries/2 || !strings.Contains(got, fmt.Sprintf("g{n=\"%d\"} 1\n", n)) {
		t.Errorf("%d samples", strings.Count(got, "\n"))
	}
	long := "m{a=\"" + strings.Repeat("x", mostSeriesBytes) + "\"} 1\n"
	before := s.Stats().Conflicts.Series
	left, _ := errors.AsType[LeftOutError](p.ReadText([]byte(long)))
	testkit.Want(t, left == 1 && s.Stats().Conflicts.Series == before+1, "a long series is taken")
}
