//go:build !race

package report

import (
	"strings"
	"testing"
	"time"

	"github.com/cabrank/cabrank/lab/internal/goal"
	"github.com/cabrank/cabrank/lab/internal/latency"
	"github.com/cabrank/cabrank/lab/internal/whatif"
)

// asked answers a question on a service that takes 10 ms or, one call in ten, 100 ms.
func asked(t *testing.T, change func(*whatif.Question)) WhatIf {
	t.Helper()
	h := latency.New()
	for range 900 {
		h.Record(10 * time.Millisecond)
	}
	for range 100 {
		h.Record(100 * time.Millisecond)
	}
	q := whatif.Question{
		Rate: 200, Workers: []int{5, 8}, Slots: []int{1}, Calls: 10_000, Seed: 1,
		Calibrations: []whatif.Calibration{{Times: h, Source: "1,000 calls, 1 at a time", Echo: time.Millisecond}},
		Queue:        whatif.Queue{Length: 1000, Timeout: 30 * time.Second},
	}
	change(&q)
	a, err := q.Ask(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	a.Service, a.Began, a.Machine = "a.B/C of localhost:1", time.Unix(0, 0), []string{"The lab ran on a machine."}
	return WhatIf{a}
}

func holding(t *testing.T, text string) func(*whatif.Question) {
	t.Helper()
	thresholds, err := goal.Parse([]string{text})
	if err != nil {
		t.Fatal(err)
	}
	return func(q *whatif.Question) { q.Thresholds = thresholds }
}

func TestWhatIfInWords(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		change func(*whatif.Question)
		want   []string
	}{
		{holding(t, "p99<150ms"), []string{
			"5 workers hold p99<150ms at 200/s; least request would take 8, power of two choices 8, round robin more than 8, ",
			"With 5 workers p50 is ", "By round robin p99 is ",
			"A call keeps a slot for 18 ms in the mean, p50 9 ms, p99 99 ms: 1,000 calls, 1 at a time.",
		}},
		{func(q *whatif.Question) {
			holding(t, "p99<150ms")(q)
			q.Workers = []int{5, 6, 7, 8, 9}
		}, []string{"5 workers hold", " power of two choices 8 (7 to 8 by chance)"}},
		{holding(t, "p99<50ms"), []string{
			"None of 5 to 8 workers holds p99<50ms at 200/s, and more would not help: one call in 100 takes longer than 100 ms without any wait.",
		}},
		{func(q *whatif.Question) { q.Workers = []int{2} }, []string{
			"With 2 workers comes 1.80 times what can be done: the queue grows without end.",
		}},
		{func(q *whatif.Question) {
			q.Workers, q.Timeout, q.Slots = []int{1}, 300*time.Millisecond, []int{2}
		}, []string{"With 1 worker of 2 slots p50 is ", "of the calls get no answer. By round robin "}},
		{func(q *whatif.Question) { q.Calibrations[0].CPU, q.Workers = 5*time.Millisecond, []int{8} }, []string{
			" It computes for 5 ms of that: 200/s take 1 cores, and on fewer",
		}},
		{func(*whatif.Question) {}, []string{"With 8 workers p50 is ", "every call is answered"}},
	} {
		all := strings.Join(asked(t, tc.change).Summary(), "\n")
		for _, want := range tc.want {
			if !strings.Contains(all, want) {
				t.Errorf("no %q in\n%s", want, all)
			}
		}
	}
}

// Every kind of answer makes a page.
func TestWhatIfPages(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*whatif.Question){
		"goal":      holding(t, "p99<150ms"),
		"overload":  func(q *whatif.Question) { q.Workers = []int{1, 2} },
		"one":       func(q *whatif.Question) { q.Workers = []int{6} },
		"deadlines": func(q *whatif.Question) { q.Timeout, q.Slots = 200*time.Millisecond, []int{1, 3} },
	} {
		page := string(asked(t, change).Page().HTML())
		for _, want := range []string{"<h1>What if: a.B/C of localhost:1 at 200/s</h1>", "two choices", "The lab ran on a machine.", "Poisson"} {
			if !strings.Contains(page, want) {
				t.Errorf("%s: no %q", name, want)
			}
		}
		if len(page) > 200_000 || strings.Contains(page, "NaN") || strings.Contains(page, "%!") {
			t.Errorf("%s: %d bytes", name, len(page))
		}
	}
}
