package relay

import (
	"testing"

	"golang.org/x/net/http2"
)

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
