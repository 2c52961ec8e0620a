package ranksim

import (
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/rank"
)

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
		if Share(inTime, all) < 0.9 {
			t.Errorf("%s: %.3f of slot time is for calls that end in time", name, Share(inTime, all))
		}
	}
}
