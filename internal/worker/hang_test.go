package worker

import (
	"testing"
	"time"
)

// R6: a worker is replaced only if it owes an answer and was silent and still for the
// hang timeout, without a new call, or idle and deaf three times; work is never a
// reason.
func TestHung(t *testing.T) {
	const s, timeout = time.Second, 30 * time.Second
	const never = 1000 * time.Hour
	silent := signs{inFlight: 1, asked: true, silent: 30 * s, still: 30 * s, alone: 30 * s, left: never}
	with := func(change func(*signs)) signs {
		changed := silent
		change(&changed)
		return changed
	}
	for _, test := range []struct {
		name  string
		signs signs
		want  bool
	}{
		{"nothing known", signs{left: never}, false},
		{"silent and still", silent, true},
		{"its callers have given up", with(func(s *signs) { s.inFlight, s.givenUp, s.left = 0, 5, 0 }), true},
		{"not long enough", with(func(x *signs) { x.silent = 29 * s }), false},
		{"a byte came 10 s ago", with(func(x *signs) { x.silent = 10 * s }), false},
		{"computing", with(func(x *signs) { x.still = 0 }), false},
		{"has computed lately", with(func(x *signs) { x.still = 29 * s }), false},
		{"a call came 29 s ago that may just be slow", with(func(x *signs) { x.silent, x.alone = 45*s, 29*s }), false},
		{"nobody has asked it how it is", with(func(x *signs) { x.asked = false }), false},
		{"owes nothing: its streams are idle", signs{inFlight: 5, asked: true, still: time.Hour, alone: never}, false},
		{"runs of 20 s were seen", with(func(x *signs) { x.silent, x.longest = 59*s, 20*s }), false},
		{"three times the longest run", with(func(x *signs) { x.silent, x.still, x.alone, x.longest = 60*s, 60*s, 60*s, 20*s }), true},
		{"short runs do not shorten the timeout", with(func(x *signs) { x.silent, x.longest = s, time.Millisecond }), false},
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
		if test.signs.hung(0) || test.signs.mute(0) || test.signs.urgent(0) {
			t.Errorf("%s: hung although hang_timeout is off", test.name)
		}
	}
}

// R6: long before it is replaced a silent worker is asked for its health, and gets no
// new calls, so that the last one that came has the whole timeout.
func TestMute(t *testing.T) {
	const s, timeout = time.Second, 30 * time.Second
	for _, test := range []struct {
		name         string
		signs        signs
		urgent, mute bool
	}{
		{"nothing known", signs{}, false, false},
		{"silent for a moment", signs{asked: true, silent: 7 * s, still: 7 * s}, false, false},
		{"silent for a quarter", signs{asked: true, silent: 8 * s, still: 8 * s}, true, false},
		{"silent for nearly half", signs{asked: true, silent: 12 * s, still: 9 * s}, true, true},
		{"computing", signs{asked: true, silent: 12 * s}, true, false},
		{"not asked", signs{silent: 12 * s, still: 9 * s}, true, false},
		{"runs of 60 s were seen", signs{asked: true, silent: 40 * s, still: 40 * s, longest: 60 * s}, false, false},
	} {
		if urgent, mute := test.signs.urgent(timeout), test.signs.mute(timeout); urgent != test.urgent || mute != test.mute {
			t.Errorf("%s: asked every second %v, no new calls %v; want %v, %v", test.name, urgent, mute, test.urgent, test.mute)
		}
	}
}

// R6: what a worker owes an answer to, and what shows that it has a thread.
func TestOwes(t *testing.T) {
	start := time.Now()
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	alive, refused := verdict{finding: serving, answered: true}, verdict{finding: busy, answered: true, refused: true, asked: at(12)}
	mute := verdict{finding: failed, asked: at(12)}
	cut := Work{GivenUp: 2, First: at(5), Left: at(10), Latest: at(8)}
	for _, test := range []struct {
		name  string
		work  Work
		heard verdict // at 15
		want  time.Time
	}{
		{"nothing", Work{}, alive, time.Time{}},
		{"a call", Work{InFlight: 1, Owed: at(20)}, alive, at(20)},
		{"a call of before a byte", Work{InFlight: 1, Owed: at(20), Heard: at(30)}, alive, at(30)},
		{"a call of before an answer to the question", Work{InFlight: 1, Owed: at(1)}, alive, at(15)},
		{"a call, and the question is refused", Work{InFlight: 1, Owed: at(1)}, refused, at(1)},
		{"a call that was given up, and the question is refused", cut, refused, at(5)},
		{"a call that was given up, and the question is not answered", cut, mute, at(5)},
		{"a call that was given up, and then the question is answered", cut, alive, time.Time{}},
		{"an idle stream, and the question is refused", Work{InFlight: 1}, refused, time.Time{}},
		{"nothing, and the question is refused", Work{}, refused, at(12)},
		{"nothing, and the question is not answered", Work{}, mute, at(12)},
	} {
		var h hang
		h.hear(test.heard, at(15))
		if got := h.since(test.work); !got.Equal(test.want) {
			t.Errorf("%s: since %v, want %v", test.name, got.Sub(start), test.want.Sub(start))
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
		pokes uint64
	}
	const s = time.Second
	for name, looks := range map[string][]look{
		"no use":               {{0, 500, 0, 0}, {s, 500, s, 0}, {30 * s, 500, 30 * s, 0}},
		"a wake-up a second":   {{0, 500, 0, 0}, {10 * s, 502, 10 * s, 0}, {30 * s, 506, 30 * s, 0}},
		"use":                  {{0, 500, 0, 0}, {s, 500, s, 0}, {2 * s, 520, 0, 0}, {5 * s, 520, 3 * s, 0}},
		"steady little use":    {{0, 500, 0, 0}, {10 * s, 510, 0, 0}, {20 * s, 520, 0, 0}},
		"a process has ended":  {{0, 500, 0, 0}, {s, 500, s, 0}, {2 * s, 100, 0, 0}, {3 * s, 100, s, 0}},
		"refuses calls":        {{0, 500, 0, 0}, {s, 502, s, 10}, {10 * s, 510, 10 * s, 40}},
		"computes and refuses": {{0, 500, 0, 0}, {s, 530, 0, 10}},
		"first tick":           {{0, 500, 0, 0}, {s, 501, s, 0}},
	} {
		var still stillness
		began := time.Now()
		for _, l := range looks {
			still.look(l.ticks, l.pokes, began.Add(l.after))
			if got := still.lasted(); got != l.want {
				t.Errorf("%s, after %v: still for %v, want %v", name, l.after, got, l.want)
			}
		}
	}
}
