package shard

import (
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

// R11: who costs more than its share waits in turn, and does not when it has kept
// below for as long as it has cost too much.
func TestShare(t *testing.T) {
	const pause = 10 * time.Millisecond
	s := newReadCost(0)
	now := time.Duration(0)
	for i, step := range []struct {
		after, took time.Duration
		waits       bool
	}{
		{0, 0, true}, // nothing is known of it
		{costPart * (mostOwed - leastOwed), 0, true},
		{costPart, 0, false},
		{pause, pause / costPart, false}, // just its share
		{pause, pause / costPart, false},
		{costPart * leastOwed, 0, false},
		{0, leastOwed - 1, false}, // what it may cost at once after a pause
		{0, 1, true},
		{0, time.Hour, true}, // no more than mostOwed is owed
		{costPart * (mostOwed - leastOwed), 0, true},
		{costPart, 0, false},
	} {
		now += step.after
		s.charge(step.took)
		if got := s.usedUp(now); got != step.waits {
			t.Errorf("step %d: it waits: %v, owes %v", i, got, s.owed)
		}
	}
}

// Where those who wait in turn have more than fits into one, what others are answered
// leaves before they are read.
func TestAnswersLeaveBeforeThoseWhoWait(t *testing.T) {
	over(t, transports[:2], func(h *host, tr transport) {
		t := h.t
		good, first := h.caller(t, tr)
		busy, second := h.caller(t, tr)
		var asked []string
		left := -1
		h.do(func() {
			h.asked = func(path string) {
				if asked = append(asked, path); path == "/give/2" {
					left = len(good.Conn.Output())
				}
			}
			good.driver.(*socket).cost = readCost{asked: h.now}
			busy.driver.(*socket).cost = newReadCost(h.now)
			h.poller.left = 0
			request(second, 1, testkit.End, "/give/2")
			request(first, 1, testkit.End, "/give/1")
		})
		for _, p := range []*testkit.Peer{first, second} {
			p.WantHeaders(1, testkit.NoEnd)
			p.WantData(1, testkit.NoEnd)
		}
		h.do(func() {
			testkit.Want(t, left == 0 && len(asked) == 2 && asked[0] == "/give/1",
				"asked %q; %d bytes of the first answer waited", asked, left)
		})
	})
}
