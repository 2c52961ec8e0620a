package relay

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/testkit"
)

// granted is a waiter that keeps its lease.
type granted struct{ lease rank.Lease }

func (g *granted) Granted(l rank.Lease) { g.lease = l }
func (g *granted) Refused(rank.Reason)  {}

// An overload is told once when it begins and once when it is over, however often
// the order is tried the other way round meanwhile.
func TestOverloadIsTold(t *testing.T) {
	var lines bytes.Buffer
	told := overloads{log: slog.New(slog.NewTextHandler(&lines, nil))}
	r := rank.New(rank.Options{
		QueueLength: 10,
		Order:       func(*rank.OrderState, time.Duration) bool { return true },
	})
	r.SetReady(r.Add("worker-1", rank.EndpointOptions{Slots: 1}), true, 0, nil)
	burst := func(now time.Duration) {
		var calls [3]rank.Ticket
		var waiters [3]granted
		for i := range calls {
			if lease, verdict, _ := r.Acquire(&calls[i], &waiters[i], now); verdict == rank.Granted {
				waiters[i].lease = lease
			}
		}
		for _, i := range []int{0, 2, 1} { // the newest first
			deliver(r.Release(waiters[i].lease, rank.OK, now, nil))
			if next := told.tell(r, now); i == 1 && next != now+overloadGap {
				t.Errorf("at %v it wants to look again at %v", now, next)
			}
		}
	}
	burst(time.Second)
	testkit.Want(t, told.lasts, "no overload")
	burst(3 * time.Second) // on trial since
	testkit.Equal(t, told.tell(r, 7*time.Second), 8*time.Second, "it wants to look again at")
	if next := told.tell(r, 8*time.Second); next != 0 || told.lasts {
		t.Errorf("it wants to look again at %v, lasts: %v", next, told.lasts)
	}
	got := strings.Split(strings.TrimSpace(lines.String()), "\n")
	if len(got) != 2 || !strings.Contains(got[0], "level=WARN") || !strings.Contains(got[0], "callers=1 waiting=1") ||
		!strings.Contains(got[1], "level=INFO") || !strings.Contains(got[1], "lasted=2s") {
		t.Errorf("logged %q, want one warning and one line when it is over", got)
	}
}
