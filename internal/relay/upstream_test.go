package relay

import (
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/cabrank/cabrank/internal/testkit"
)

func streamLimit(n uint32) http2.Setting {
	return http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: n}
}

// R15: at the worker's stream limit, also when it is lowered later, calls get
// another connection.
func TestStreamLimit(t *testing.T) {
	g := newRig(t)
	_, accept := g.worker("w1", 9, streamLimit(2))
	caller := g.caller()
	caller.AnyOrder()
	caller.WriteHeaders(1, end, request(hello)...)
	first := accept()
	first.AnyOrder()
	first.WantHeaders(1, end)
	caller.WriteHeaders(3, end, request(hello)...)
	first.WantHeaders(3, end)
	caller.WriteHeaders(5, end, request(hello)...)
	second := accept()
	second.WantHeaders(1, end)
	reply(first, 1)
	reply(first, 3)
	wantReply(caller, 1)
	wantReply(caller, 3)

	second.WriteSettings(streamLimit(1))
	second.WantSettingsAck()
	caller.WriteHeaders(7, end, request(hello)...)
	first.WantHeaders(5, end)
	reply(first, 5)
	wantReply(caller, 7)
	reply(second, 1)
	wantReply(caller, 5)
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

// A worker that breaks the rules of its connection fails what it has seen at
// once, and the next call gets a fresh connection.
func TestBrokenConnection(t *testing.T) {
	g := newRig(t)
	_, accept := g.worker("w1", 9)
	caller := g.caller()
	caller.AnyOrder()
	caller.WriteHeaders(1, end, request(hello)...)
	caller.WriteHeaders(3, noEnd, request(hello)...)
	worker := accept()
	worker.WantHeaders(1, end)
	worker.WantHeaders(3, noEnd)
	worker.WriteFrame(http2.FramePushPromise, 4, 1, []byte{0, 0, 0, 2})
	wantStatus(caller, 1, "14", "cabrank: bad response from worker")
	wantStatus(caller, 3, "14", "cabrank: bad response from worker")
	caller.WantRST(3, http2.ErrCodeNo)
	caller.WriteHeaders(5, end, request(hello)...)
	worker.Skip(testkit.RST)
	worker.WantGoAway(http2.ErrCodeProtocol)
	fresh := accept()
	fresh.WantHeaders(1, end)
	reply(fresh, 1)
	wantReply(caller, 5)
	worker.WantClosed()
}

// R4, R10: before an endpoint has greeted it gets no call; if it does not greet
// in time its connection ends and the calls move.
func TestNoGreeting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t)
		silent := testkit.NewWorker(t, g.pipe(g.AddEndpoint("w1", 1, true)))
		caller := g.pipeCaller()
		caller.WriteHeaders(1, end, request(hello)...)
		silent.WantSettings()
		silent.Skip(testkit.WindowUpdate)
		silent.WantIdle()
		_, other := g.pipeWorker("w2", 1)
		began := time.Now()
		pass(dialTimeout / 2)
		silent.WantIdle()
		silent.WantClosed()
		wantTook(t, began, dialTimeout)
		other.WantHeaders(1, end)
		reply(other, 1)
		wantReply(caller, 1)
	})
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

// Activity tells what health checks want to know (R6).
func TestActivity(t *testing.T) {
	g := newRig(t)
	e, accept := g.worker("w1", 3)
	if got := g.Activity(e); !got.Answered.IsZero() || got.InFlight != 0 {
		t.Errorf("before any call: %+v", got)
	}
	caller := g.caller()
	caller.WriteHeaders(1, end, request(hello)...)
	worker := accept()
	worker.WantHeaders(1, end)
	caller.WriteHeaders(3, end, request(hello)...)
	worker.WantHeaders(3, end)
	if got := g.Activity(e); !got.Answered.IsZero() || got.InFlight != 2 {
		t.Errorf("with two calls running: %+v", got)
	}
	caller.WriteHeaders(5, end, request(hello)...)
	worker.WantHeaders(5, end)
	caller.WriteRST(5, http2.ErrCodeCancel)
	worker.WantRST(5, http2.ErrCodeCancel)
	if got := g.Activity(e); !got.Answered.IsZero() || got.InFlight != 2 {
		t.Errorf("after a call that was given up: %+v", got)
	}
	reply(worker, 1)
	wantReply(caller, 1)
	if got := g.Activity(e); got.Answered.IsZero() || got.InFlight != 1 {
		t.Errorf("with one of them finished: %+v", got)
	}
	reply(worker, 3)
	wantReply(caller, 3)
}
