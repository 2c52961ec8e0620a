package worker

import (
	"testing"
	"time"
)

// R6: a worker is replaced only if with calls in flight it was silent and still
// for the hang timeout, or idle and deaf three times; work is never a reason.
func TestHung(t *testing.T) {
	const s, timeout = time.Second, 30 * time.Second
	const never = 1000 * time.Hour
	for _, test := range []struct {
		name  string
		signs signs
		want  bool
	}{
		{"nothing known", signs{left: never}, false},
		{"silent and still", signs{inFlight: 1, silent: 30 * s, still: 30 * s}, true},
		{"silent and still, not long enough", signs{inFlight: 1, silent: 29 * s, still: 29 * s}, false},
		{"a byte came 10 s ago", signs{inFlight: 5, silent: 10 * s, still: 60 * s}, false},
		{"silent and computing", signs{inFlight: 1, silent: time.Hour}, false},
		{"silent, has computed lately", signs{inFlight: 1, silent: time.Hour, still: 29 * s}, false},
		{"owes nothing: its streams are idle", signs{inFlight: 5, still: time.Hour}, false},
		{"runs of 20 s were seen", signs{inFlight: 1, silent: 59 * s, still: 59 * s, longest: 20 * s}, false},
		{"three times the longest run", signs{inFlight: 1, silent: 60 * s, still: 60 * s, longest: 20 * s}, true},
		{"short runs do not shorten the timeout", signs{inFlight: 1, silent: s, still: s, longest: time.Millisecond}, false},
		{"missed checks mean nothing with calls in flight", signs{inFlight: 1, missed: 9, left: never}, false},
		{"idle, two checks missed", signs{missed: 2, left: never}, false},
		{"idle, three checks missed", signs{missed: 3, left: never}, true},
		{"idle, a handler may run for nobody", signs{missed: 9, left: 29 * s}, false},
		{"idle, that handler would have ended", signs{missed: 9, left: 30 * s}, true},
		{"idle, that handler may take longer", signs{missed: 9, left: 59 * s, longest: 20 * s}, false},
	} {
		if got := test.signs.hung(timeout); got != test.want {
			t.Errorf("%s: hung %v, want %v", test.name, got, test.want)
		}
		if test.signs.hung(0) {
			t.Errorf("%s: hung although hang_timeout is off", test.name)
		}
	}
}

// A group is still while it uses no more CPU than runtimes do that only look
// around; use, and a process that has gone, begin it anew.
func TestStillness(t *testing.T) {
	type look struct {
		after time.Duration // since the first look
		ticks int64
		want  time.Duration
	}
	const s = time.Second
	for name, looks := range map[string][]look{
		"no use":              {{0, 500, 0}, {s, 500, s}, {30 * s, 500, 30 * s}},
		"a wake-up a second":  {{0, 500, 0}, {10 * s, 502, 10 * s}, {30 * s, 506, 30 * s}},
		"use":                 {{0, 500, 0}, {s, 500, s}, {2 * s, 520, 0}, {5 * s, 520, 3 * s}},
		"steady little use":   {{0, 500, 0}, {10 * s, 510, 0}, {20 * s, 520, 0}},
		"a process has ended": {{0, 500, 0}, {s, 500, s}, {2 * s, 100, 0}, {3 * s, 100, s}},
		"first tick":          {{0, 500, 0}, {s, 501, s}},
	} {
		var still stillness
		began := time.Now()
		for _, l := range looks {
			still.look(l.ticks, began.Add(l.after))
			if got := still.lasted(); got != l.want {
				t.Errorf("%s, after %v: still for %v, want %v", name, l.after, got, l.want)
			}
		}
	}
}
