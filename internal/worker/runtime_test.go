package worker

import (
	"testing"
	"time"
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
			if !b.since.Equal(at(s.want)) {
				t.Errorf("%s, step %d: since %v, want second %d", name, i, b.since.Sub(began), s.want)
			}
		}
	}
}

// A worker is replaced when it owes an answer for the limit and has computed
// without a pause for 6 s; a handler that sleeps never is.
func TestBurnOver(t *testing.T) {
	const limit = 20 * time.Second
	for _, test := range []struct {
		name string
		use  func(second int) int64 // ticks used in that second
		want int                    // second of the end; 0 for never
	}{
		{"loops", func(int) int64 { return 100 }, 20},
		{"loops on a crowded machine", func(int) int64 { return 16 }, 20},
		{"sleeps", func(int) int64 { return 1 }, 0},
		{"computes, then waits", func(s int) int64 { return int64(100 * (s / 18 % 2)) }, 22},
		{"computes now and then", func(s int) int64 { return int64(100 * (1 - min(s%6, 1))) }, 0},
		{"a process has gone", func(s int) int64 { return int64(100 - 300*(s/18%2)) }, 0},
	} {
		began := time.Now()
		var b cpuWatch
		var ticks int64
		ended := 0
		for quarter := range 4 * 36 {
			now := began.Add(time.Duration(quarter) * 250 * time.Millisecond)
			ticks += test.use(quarter/4) / 4
			if b.see(Work{Owed: began, InFlight: 1}, now); b.due(limit, now) {
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

// Nothing is read before it can matter, and not more than once in two seconds.
func TestBurnLooksSeldom(t *testing.T) {
	began := time.Now()
	var b cpuWatch
	if b.due(time.Second, began) {
		t.Error("an idle worker is looked at")
	}
	b.see(Work{Owed: began, InFlight: 1}, began)
	looks := 0
	for quarter := range 4 * 30 {
		if now := began.Add(time.Duration(quarter) * 250 * time.Millisecond); b.due(20*time.Second, now) {
			b.look(0, now)
			looks++
		}
	}
	if looks != 8 {
		t.Errorf("%d looks in 30 s at a limit of 20 s, want 8", looks)
	}
	if b.over(0, began.Add(time.Hour)) {
		t.Error("over although max_run_time is off")
	}
}

// R5: a worker that computes for nobody is replaced if it has not paused since its
// last call ended: what computes later is something else.
func TestBurnForNobody(t *testing.T) {
	const limit = 20 * time.Second
	crowded := func(second int) int64 {
		if second < 10 {
			return 5 // undecided: too little for computing, too much for calm
		}
		return 100
	}
	for _, test := range []struct {
		name  string
		use   func(second int) int64
		work  Work
		looks int
		over  bool
	}{
		{"a handler loops on", func(int) int64 { return 100 }, Work{Served: 1}, 18, true},
		{"a handler is held up by a crowd", crowded, Work{Served: 1}, 18, true},
		{"nobody has called", func(int) int64 { return 100 }, Work{}, 0, false},
		{"calm, then something else", func(s int) int64 { return int64(100 * min(s/7, 1)) }, Work{Served: 1}, 2, false},
		{"streams run", func(int) int64 { return 100 }, Work{Served: 1, InFlight: 1}, 0, false},
	} {
		began := time.Now()
		var b cpuWatch
		var ticks int64
		looks, over := 0, false
		for second := 1; second <= 37; second++ {
			now := began.Add(time.Duration(second) * time.Second)
			ticks += test.use(second)
			if b.see(test.work, now); b.due(limit, now) {
				b.look(ticks, now)
				looks++
			}
			over = over || b.over(limit, now)
		}
		if over != test.over || looks != test.looks {
			t.Errorf("%s: over %v after %d looks, want %v and %d", test.name, over, looks, test.over, test.looks)
		}
	}
}
