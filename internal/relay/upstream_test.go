package relay

import (
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

// A call that gets its slot when the relay has ended is told so.
func TestNoConnectionAtTheEnd(t *testing.T) {
	g := newRig(t)
	g.closing.Store(true)
	caller := testkit.DialCaller(t, g.addr) // the door knows, too
	caller.WantClosed()
	g.closing.Store(false)
	late := g.caller()
	g.closing.Store(true)
	g.worker("w1", 1)
	late.WriteHeaders(1, end, request(hello)...)
	wantStatus(late, 1, "14", "cabrank: shutting down")
}
