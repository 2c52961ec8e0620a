package worker

import (
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

// R5: what a worker is held to. Times are seconds; 0 is never.
func TestBurnSees(t *testing.T) {
	began := time.Now()
	at := func(second int) time.Time {
		if second == 0 {
			return time.Time{}
		}
		return began.Add(time.Duration(second) * time.Second)
	}
	type step struct{ now, owed, heard, left, running, served, want int }
	for name, steps := range map[string][]step{
		"never called":                   {{9, 0, 0, 0, 0, 0, 0}},
		"a call, then its answer":        {{8, 7, 5, 0, 1, 0, 7}, {9, 7, 5, 0, 1, 0, 7}, {12, 0, 11, 0, 0, 1, 12}, {13, 0, 11, 0, 0, 1, 12}},
		"beside calls that are answered": {{9, 7, 9, 0, 3, 4, 7}, {13, 7, 12, 0, 2, 9, 7}},
		"one after the other":            {{8, 7, 5, 0, 1, 0, 7}, {10, 9, 8, 0, 1, 1, 9}},
		"streams that are answered":      {{9, 0, 9, 0, 2, 0, 0}, {20, 0, 19, 0, 2, 0, 0}, {30, 0, 19, 0, 2, 1, 0}},
		"given up, not a word since":     {{9, 7, 5, 0, 1, 0, 7}, {11, 0, 5, 10, 0, 1, 7}, {12, 0, 5, 10, 1, 1, 7}, {14, 11, 5, 10, 1, 1, 7}},
		"given up, then a word":          {{9, 7, 5, 0, 1, 0, 7}, {12, 0, 11, 10, 0, 1, 12}},
		"given up, others are answered":  {{9, 7, 5, 0, 1, 0, 7}, {12, 0, 11, 10, 2, 1, 0}},
		"given up before it was seen":    {{8, 0, 5, 7, 0, 1, 8}, {9, 0, 5, 7, 0, 1, 8}},
		"an older call is seen late":     {{9, 8, 5, 0, 1, 0, 8}, {10, 7, 5, 0, 2, 0, 7}},
	} {
		var b cpuWatch
		for i, s := range steps {
			b.see(Work{Owed: at(s.owed), Heard: at(s.heard), Left: at(s.left), InFlight: s.running, Served: uint64(s.served)}, at(s.now))
			testkit.Want(t, b.since.Equal(at(s.want)), "%s, step %d: since %v, want second %d", name, i, b.since.Sub(began), s.want)
		}
	}
}

// R5: a worker is replaced when it owes an answer for the limit and has computed without
// a pause for 6 s, or computes for nobody and has not paused since its last call ended:
// what computes later is something else. A handler that sleeps never is. Nothing is read
// before it can matter, and not more than once in two seconds.
func TestBurnOver(t *testing.T) {
	const limit = 20 * time.Second
	began := time.Now()
	owes, left := Work{Owed: began, InFlight: 1}, Work{Served: 1}
	for _, test := range []struct {
		name  string
		work  Work
		use   func(second int) int64 // hundredths of a second of CPU used in that second
		ended int                    // second of the end; 0 for never
		looks int                    // in 36 s
	}{
		{"loops", owes, func(int) int64 { return 100 }, 20, 12},
		{"loops on a crowded machine", owes, func(int) int64 { return 16 }, 20, 12},
		{"sleeps", owes, func(int) int64 { return 1 }, 0, 12},
		{"computes, then waits", owes, func(s int) int64 { return int64(100 * (s / 18 % 2)) }, 22, 12},
		{"computes now and then", owes, func(s int) int64 { return int64(100 * (1 - min(s%6, 1))) }, 0, 12},
		{"a process has gone", owes, func(s int) int64 { return int64(100 - 300*(s/18%2)) }, 0, 12},
		{"a handler loops on", left, func(int) int64 { return 100 }, 22, 18},
		{"a handler is held up by a crowd", left, func(s int) int64 { return int64(5 + 95*min(s/10, 1)) }, 28, 18},
		{"nobody has called", Work{}, func(int) int64 { return 100 }, 0, 0},
		{"calm, then something else", left, func(s int) int64 { return int64(100 * min(s/7, 1)) }, 0, 2},
		{"streams run", Work{Served: 1, InFlight: 1}, func(int) int64 { return 100 }, 0, 0},
	} {
		var b cpuWatch
		ticks, looks, ended := int64(0), 0, 0
		for quarter := range 4*36 + 1 {
			now := began.Add(time.Duration(quarter) * 250 * time.Millisecond)
			ticks += test.use(quarter/4) / 4
			if b.see(test.work, now); b.due(limit, now) {
				b.look(time.Duration(ticks)*10*time.Millisecond, now)
				looks++
			}
			if ended == 0 && b.over(limit, now) {
				ended = quarter / 4
			}
			testkit.Want(t, !b.over(0, now), "%s: over although max_run_time is off", test.name)
		}
		testkit.Want(t, ended == test.ended && looks == test.looks,
			"%s: ended in second %d after %d looks, want %d and %d", test.name, ended, looks, test.ended, test.looks)
	}
}
