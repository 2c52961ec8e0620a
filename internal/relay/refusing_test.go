package relay

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/rank"
)

// noWait is a waiter whose call never waits.
type noWait struct{ t *testing.T }

func (q noWait) Granted(rank.Lease)  { q.t.Error("granted later") }
func (q noWait) Refused(rank.Reason) { q.t.Error("refused later") }

// R1: a worker that keeps refusing has its slots taken away, which is logged
// once, and once more when it takes them all again.
func TestRefusingWorkerIsTold(t *testing.T) {
	var lines bytes.Buffer
	told := refusing{log: slog.New(slog.NewTextHandler(&lines, nil))}
	r := rank.New(rank.Options{})
	e := r.Add("worker-1", rank.EndpointOptions{Slots: 3, Refuses: true})
	r.SetReady(e, true, 0, nil)
	now := time.Second
	var call, other rank.Ticket
	acquire := func(ticket *rank.Ticket) rank.Lease {
		lease, verdict, _ := r.Acquire(ticket, noWait{t}, now)
		if verdict != rank.Granted {
			t.Fatalf("no slot: %v", verdict)
		}
		return lease
	}
	held := acquire(&other)
	for r.SlotChanges() == 0 && now < time.Minute {
		lease := acquire(&call)
		r.Release(lease, rank.RefusedByWorker, now, nil)
		now += 250 * time.Millisecond
		r.Tick(now, nil)
		told.tell(r)
	}
	r.Release(held, rank.OK, now, nil)
	for r.SlotChanges() < 3 && now < time.Hour {
		now += time.Second
		r.Release(acquire(&call), rank.OK, now, nil)
		told.tell(r)
	}
	got := strings.Split(strings.TrimSpace(lines.String()), "\n")
	if len(got) != 2 || !strings.Contains(got[0], "level=WARN") || !strings.Contains(got[0], "worker=worker-1 slots=1 of=3") ||
		!strings.Contains(got[1], "level=INFO") || !strings.Contains(got[1], "worker=worker-1 slots=3") {
		t.Errorf("logged %q, want one warning about 1 slot of 3 and one line when there are 3 again", got)
	}
}
