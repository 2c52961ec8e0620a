package ranksim

import (
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/testkit"
)

// Callers in a closed loop have one call at a time each, and the order of arrival has
// all wait for as long as the others take.
func TestLoop(t *testing.T) {
	t.Parallel()
	r := Run(System{Rank: rank.Options{QueueLength: 10}, Workers: []Worker{{Slots: 1}}}, nil,
		Loop{Callers: 3, Until: time.Second, Service: Constant(10 * ms)},
		Loop{Callers: 1, From: 2 * time.Second, Until: 3 * time.Second, Service: Constant(10 * ms), Think: Constant(89*ms + ms/2), Caller: 1})
	n := len(r.Calls)
	testkit.Want(t, n >= 110 && n <= 116, "%d calls, want 100 and those that waited at the end, and 10", n)
	last := time.Duration(0)
	for i, c := range r.Calls {
		rec := r.Records[i]
		switch {
		case rec.Ending != Answered:
			t.Fatalf("call %d: %v", i, rec.Ending)
		case c.Caller == 0 && i >= 3 && rec.Sojourn != 30*ms-trip:
			t.Fatalf("call %d: %v, want that of three less the trip", i, rec.Sojourn)
		case c.Caller == 1 && last != 0 && c.Arrives-last != 100*ms:
			t.Fatalf("call %d comes %v after the last one", i, c.Arrives-last)
		}
		if c.Caller == 1 {
			last = c.Arrives
		}
	}
}

// A worker that is stopped goes on later, one that is killed breaks its calls off.
func TestOutages(t *testing.T) {
	t.Parallel()
	calls := []Call{{Service: 10 * ms}, {Arrives: 6 * ms, Service: 10 * ms}, {Arrives: 40 * ms, Service: ms}}
	stopped := one(Worker{Slots: 2, Outages: []Outage{{From: 5 * ms, To: 25 * ms}}}, calls...)
	for i, want := range []time.Duration{30 * ms, 29 * ms, ms} {
		if rec := stopped.Records[i]; rec.Ending != Answered || rec.Sojourn != want {
			t.Errorf("stopped, call %d: %v after %v, want %v", i, rec.Ending, rec.Sojourn, want)
		}
	}
	killed := one(Worker{Slots: 2, Outages: []Outage{{From: 5 * ms, To: 25 * ms, Killed: true}}}, calls...)
	for i, want := range []Record{{Ending: Broken, Sojourn: 5 * ms}, {Ending: Answered, Sojourn: 29 * ms}, {Ending: Answered, Sojourn: ms}} {
		if rec := killed.Records[i]; rec.Ending != want.Ending || rec.Sojourn != want.Sojourn {
			t.Errorf("killed, call %d: %v after %v, want %v after %v", i, rec.Ending, rec.Sojourn, want.Ending, want.Sojourn)
		}
	}
}

// Each call waits for most of its time, is cut by its deadline while it runs, and gives its
// slot to the next one early: in the order of arrival nobody would ever be answered, and
// nothing learned. Calls that take longer than was learned of them are the same.
func TestCutByDeadlines(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		slots                  int
		every, before, service time.Duration
		timeout                time.Duration
	}{
		"nothing is known":        {slots: 2, every: 10 * ms, before: 25 * ms, service: 25 * ms, timeout: 60 * ms},
		"calls have become slow":  {slots: 100, every: 155 * time.Microsecond, before: 2 * ms, service: 20 * ms, timeout: 26 * ms},
		"and what is left is not": {slots: 4, every: 5 * ms, before: 2 * ms, service: 28 * ms, timeout: 60 * ms},
	} {
		var calls []Call
		for at := time.Duration(0); at < 20*time.Second; at += test.every {
			c := Call{Arrives: at, Service: test.service, Deadline: at + test.timeout}
			if at < 5*time.Second {
				c.Service = test.before
			}
			calls = append(calls, c)
		}
		got := Run(System{Rank: rankOptions(), Workers: Alike(test.slots, Worker{Slots: 1, OnCancel: rank.Free})}, calls)
		inTime, all := got.Held(func(c *Call, _ *Record) bool { return c.Arrives > 10*time.Second })
		testkit.Want(t, Share(inTime, all) >= 0.9, "%s: %.3f of slot time is for calls that end in time", name, Share(inTime, all))
	}
}
