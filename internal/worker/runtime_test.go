package worker

import (
	"testing"
	"time"
)

// R5: which call a worker is held to. Times are seconds; 0 is never.
func TestBurnOwes(t *testing.T) {
	began := time.Now()
	at := func(second int) time.Time {
		if second == 0 {
			return time.Time{}
		}
		return began.Add(time.Duration(second) * time.Second)
	}
	type step struct{ owed, heard, left, said, want int }
	for name, steps := range map[string][]step{
		"idle":                                {{0, 5, 3, 9, 0}},
		"a call, then its answer":             {{7, 5, 0, 6, 7}, {7, 5, 0, 6, 7}, {0, 9, 0, 6, 0}},
		"others are answered":                 {{7, 9, 0, 0, 7}, {7, 12, 0, 11, 7}},
		"the next of one after the other":     {{7, 5, 0, 0, 7}, {9, 8, 0, 0, 9}},
		"given up, nothing said since":        {{7, 5, 0, 0, 7}, {0, 5, 10, 0, 7}, {0, 5, 10, 0, 7}},
		"given up, the next call waits":       {{7, 5, 0, 0, 7}, {11, 5, 10, 0, 7}, {0, 5, 20, 0, 7}},
		"given up, then a word":               {{7, 5, 0, 0, 7}, {0, 11, 10, 0, 0}},
		"given up, then a health check":       {{7, 5, 0, 0, 7}, {0, 5, 10, 12, 0}},
		"given up, then others are answered":  {{7, 5, 0, 0, 7}, {12, 11, 10, 0, 12}},
		"an older call is seen late":          {{9, 5, 0, 0, 9}, {7, 5, 0, 0, 7}},
		"ended between two looks, with words": {{7, 5, 4, 0, 7}, {0, 8, 4, 0, 0}},
		"its stream begins to be answered":    {{7, 5, 4, 0, 7}, {0, 7, 4, 0, 0}},
	} {
		var b burn
		for i, s := range steps {
			b.owes(Work{Owed: at(s.owed), Heard: at(s.heard), Left: at(s.left)}, at(s.said))
			if !b.since.Equal(at(s.want)) {
				t.Errorf("%s, step %d: since %v, want second %d", name, i, b.since.Sub(began), s.want)
			}
		}
	}
}

// A worker is replaced when it owes an answer for the limit and has computed
// without a pause for 5 s; a handler that sleeps never is.
func TestBurnOver(t *testing.T) {
	const limit = 20 * time.Second
	for _, test := range []struct {
		name string
		use  func(second int) int64 // ticks used in that second
		want int                    // second of the end; 0 for never
	}{
		{"loops", func(int) int64 { return 100 }, 20},
		{"loops on a crowded machine", func(int) int64 { return 28 }, 20},
		{"sleeps", func(int) int64 { return 1 }, 0},
		{"computes, then waits", func(s int) int64 { return int64(100 * (s / 18 % 2)) }, 22},
		{"polls every 3 s", func(s int) int64 { return int64(100 * (1 - min(s%3, 1))) }, 0},
		{"a process has gone", func(s int) int64 { return int64(100 - 300*(s/18%2)) }, 0},
	} {
		began := time.Now()
		var b burn
		var ticks int64
		ended := 0
		for quarter := range 4 * 36 {
			now := began.Add(time.Duration(quarter) * 250 * time.Millisecond)
			ticks += test.use(quarter/4) / 4
			if b.owes(Work{Owed: began}, time.Time{}); b.due(limit, now) {
				b.look(ticks, now)
			}
			if b.over(limit, now) {
				ended = quarter / 4
				break
			}
		}
		if ended != test.want {
			t.Errorf("%s: ended in second %d, want %d", test.name, ended, test.want)
		}
	}
}

// Nothing is read before it can matter, and not more than once in a second.
func TestBurnLooksSeldom(t *testing.T) {
	began := time.Now()
	var b burn
	if b.due(time.Second, began) {
		t.Error("an idle worker is looked at")
	}
	b.owes(Work{Owed: began}, time.Time{})
	looks := 0
	for quarter := range 4 * 30 {
		if now := began.Add(time.Duration(quarter) * 250 * time.Millisecond); b.due(20*time.Second, now) {
			b.look(0, now)
			looks++
		}
	}
	if looks != 15 {
		t.Errorf("%d looks in 30 s at a limit of 20 s, want 15", looks)
	}
	if b.over(0, began.Add(time.Hour)) {
		t.Error("over although max_run_time is off")
	}
}
