package relay

import (
	"testing"

	"golang.org/x/net/http2"

	"github.com/cabrank/cabrank/internal/testkit"
)

func streamLimit(n uint32) http2.Setting {
	return http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: n}
}

// A worker that admits no stream at all does not make connections pile up.
func TestStreamLimitZero(t *testing.T) {
	g := newRig(t)
	_, accept := g.worker("w1", 1, streamLimit(0))
	caller := g.caller()
	caller.WriteHeaders(1, end, request(hello)...)
	first := accept()
	first.WantHeaders(1, end)
	reply(first, 1) // it was opened before the limit was known
	wantReply(caller, 1)
	caller.WriteHeaders(3, end, request(hello)...)
	second := accept()
	first.WantClosed()
	second.WantHeaders(1, end)
	reply(second, 1)
	wantReply(caller, 3)
}

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
