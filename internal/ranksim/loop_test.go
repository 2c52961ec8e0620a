package ranksim

import (
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/rank"
)

// Callers in a closed loop have one call at a time each, and the order of arrival has
// all wait for as long as the others take.
func TestLoop(t *testing.T) {
	t.Parallel()
	r := Run(System{Rank: rank.Options{QueueLength: 10}, Workers: []Worker{{Slots: 1}}}, nil,
		Loop{Callers: 3, Until: time.Second, Service: Constant(10 * ms)},
		Loop{Callers: 1, From: 2 * time.Second, Until: 3 * time.Second, Service: Constant(10 * ms), Think: Constant(89*ms + ms/2), Caller: 1})
	if n := len(r.Calls); n < 110 || n > 116 {
		t.Errorf("%d calls, want 100 and those that waited at the end, and 10", n)
	}
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
