package relay

import (
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/cabrank/cabrank/internal/testkit"
)

// R4: a refused dial proves that nothing was seen: the call waits for another
// slot, and for the endpoint's next address.
func TestDialRefused(t *testing.T) {
	g := newRig(t)
	gone, _ := testkit.ListenWorker(t)
	dead := g.AddEndpoint("w1", 1, true)
	g.Up(dead, "unix", "/nonexistent/"+gone)
	caller := g.caller()
	caller.WriteHeaders(1, end, request(hello)...)
	testkit.Eventually(t, soon, "the call to be put back", func() bool { return g.counted("moved") > 1 })
	addr, accept := testkit.ListenWorker(t)
	g.Down(dead)
	g.Up(dead, "tcp", addr)
	worker := accept()
	worker.Greet()
	worker.Skip(testkit.WindowUpdate)
	worker.WantHeaders(1, end)
	reply(worker, 1)
	wantReply(caller, 1)
}

// A call whose endpoint cannot be reached is answered when queue.timeout has
// passed (R10).
func TestDialRefusedForEver(t *testing.T) {
	g := newRig(t, withQueue(9, 50*time.Millisecond))
	e := g.AddEndpoint("w1", 1, true)
	g.Up(e, "unix", "/nonexistent/worker")
	caller := g.caller()
	caller.WriteHeaders(1, end, request(hello)...)
	wantStatus(caller, 1, "8", "cabrank: no free slot in time")
}

// R4, R14: what is still in our buffer when the worker says goodbye is taken
// out of it; the worker hears neither of the call nor of its end.
func TestGoAwayMeetsUnsent(t *testing.T) {
	g := newRig(t)
	m := newMemory(t, g, true, 1)
	m.st.do(func() {
		m.drainOutput(m.worker)
		m.feed(m.caller, m.request)
		if len(m.worker.Output()) == 0 {
			t.Error("no request was written")
		}
		m.feed(m.worker, frames(t, func(f *http2.Framer) error { return f.WriteGoAway(0, http2.ErrCodeNo, nil) }))
		if out := m.worker.Output(); len(out) > 0 {
			t.Errorf("left for the worker: %x", out)
		}
	})
	g.wantWaiting(1)
}
