package relay

import (
	"bytes"
	"testing"
	"testing/synctest"

	"golang.org/x/net/http2"

	"github.com/cabrank/cabrank/internal/testkit"
)

// A caller that leaves cancels the worker's stream at once, whether it resets
// the stream or its connection is lost, and its slot serves the next call.
func TestCancel(t *testing.T) {
	for name, leave := range map[string]func(*testkit.Peer){
		"RST_STREAM":      func(c *testkit.Peer) { c.WriteRST(1, http2.ErrCodeCancel) },
		"connection lost": (*testkit.Peer).Close,
		"protocol error":  func(c *testkit.Peer) { c.WriteHeaders(1, end, request(hello)...) },
	} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t)
			_, accept := g.worker("w1", 1)
			caller, next := g.caller(), g.caller()
			caller.WriteHeaders(1, noEnd, request(hello)...)
			worker := accept()
			worker.WantHeaders(1, noEnd)
			next.WriteHeaders(1, end, request(hello)...)
			g.wantWaiting(1)
			leave(caller)
			worker.WantRST(1, http2.ErrCodeCancel)
			worker.WantHeaders(3, end)
			reply(worker, 3)
			wantReply(next, 1)
		})
	}
}

// R14: a call that is cancelled while queued never reaches the worker.
func TestCancelWhileQueued(t *testing.T) {
	g := newRig(t)
	_, accept := g.worker("w1", 1)
	caller := g.caller()
	caller.WriteHeaders(1, end, request(hello)...)
	worker := accept()
	worker.WantHeaders(1, end)
	caller.WriteHeaders(3, noEnd, request(hello)...)
	caller.WriteData(3, end, hi())
	caller.WriteHeaders(5, end, request(hello)...)
	g.wantWaiting(2)
	caller.WriteRST(3, http2.ErrCodeCancel)
	g.wantWaiting(1)
	reply(worker, 1)
	wantReply(caller, 1)
	worker.WantHeaders(3, end) // stream 5 of the caller
	reply(worker, 3)
	wantReply(caller, 5)
	worker.WantIdle()
}

// R14: nor does one that is cancelled while it is still in our buffer.
func TestCancelInBuffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t)
		far := g.pipe(g.AddEndpoint("w1", 9, true)) // takes not even the preface yet
		synctest.Wait()
		caller := g.pipeCaller()
		caller.WriteHeaders(1, noEnd, request(hello)...)
		caller.WriteData(1, noEnd, hi())
		caller.WriteHeaders(3, noEnd, request(hello)...)
		caller.WriteData(1, end, hi())
		caller.WriteData(3, end, hi())
		synctest.Wait()
		caller.WriteRST(1, http2.ErrCodeCancel)
		synctest.Wait()
		worker := testkit.NewWorker(t, far)
		worker.Greet()
		worker.WantFields(3, noEnd, passedOn(request(hello))...)
		worker.WantDataBytes(3, hi(), end)
		reply(worker, 3)
		wantReply(caller, 3)
		worker.WantIdle()
	})
}

// RFC 9113 8.1: an answer that ends before the request ends it: NO_ERROR for
// the caller, CANCEL for the worker.
func TestAnswerBeforeEndOfRequest(t *testing.T) {
	g := newRig(t)
	_, accept := g.worker("w1", 1)
	caller := g.caller()
	caller.WriteHeaders(1, noEnd, request(hello)...)
	caller.WriteData(1, noEnd, hi())
	worker := accept()
	worker.WantHeaders(1, noEnd)
	worker.WantDataBytes(1, hi(), noEnd)
	reply(worker, 1)
	worker.WantRST(1, http2.ErrCodeCancel)
	wantReply(caller, 1)
	caller.WantRST(1, http2.ErrCodeNo)
	// What was under way meanwhile does no harm.
	caller.WriteData(1, end, hi())
	caller.WriteHeaders(3, end, request(hello)...)
	worker.WantHeaders(3, end)
	reply(worker, 3)
	wantReply(caller, 3)
}

// R13: a worker's RST_STREAM is forwarded with its code.
func TestWorkerResets(t *testing.T) {
	g := newRig(t)
	_, accept := g.worker("w1", 1)
	caller := g.caller()
	caller.WriteHeaders(1, end, request(hello)...)
	worker := accept()
	worker.WantHeaders(1, end)
	worker.WriteRST(1, http2.ErrCodeEnhanceYourCalm)
	caller.WantRST(1, http2.ErrCodeEnhanceYourCalm)

	caller.WriteHeaders(3, end, request(hello)...)
	worker.WantHeaders(3, end)
	worker.Batch(func() {
		worker.WriteHeaders(3, noEnd, responseHead()...)
		worker.WriteData(3, noEnd, hi())
	})
	caller.WantFields(3, noEnd, responseHead()...)
	caller.WantDataBytes(3, hi(), noEnd)
	worker.WriteRST(3, http2.ErrCodeCancel)
	caller.WantRST(3, http2.ErrCodeCancel)
	g.wantInFlight(0)
}

// Trailers wait behind DATA that waits for the caller's window, and the slot
// does not: the worker has answered (R9).
func TestTrailersBehindQueuedData(t *testing.T) {
	g := newRig(t)
	_, accept := g.worker("w1", 1)
	caller := testkit.DialCaller(t, g.addr)
	caller.Greet(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	caller.Skip(testkit.WindowUpdate)
	body := bytes.Repeat(hi(), 1000)
	caller.WriteHeaders(1, end, request(hello)...)
	worker := accept()
	worker.WantHeaders(1, end)
	worker.WriteHeaders(1, noEnd, responseHead()...)
	worker.WriteData(1, noEnd, body)
	worker.WriteHeaders(1, end, "grpc-status", "0", "x-last", "1")
	g.wantInFlight(0)
	caller.WantFields(1, noEnd, responseHead()...)
	caller.WantIdle()
	for n := range uint32(6) {
		caller.WriteWindowUpdate(1, 1000)
		caller.WantDataBytes(1, body[1000*n:1000*n+1000], noEnd)
	}
	caller.WantFields(1, end, "grpc-status", "0", "x-last", "1")

	// END_STREAM on DATA waits as well.
	caller.WriteHeaders(3, end, plain("GET", "/")...)
	worker.WantHeaders(3, end)
	worker.WriteHeaders(3, noEnd, ":status", "200")
	worker.WriteData(3, end, body[:10])
	caller.WantFields(3, noEnd, ":status", "200")
	caller.WriteWindowUpdate(3, 9)
	caller.WantDataBytes(3, body[:9], noEnd)
	caller.WriteWindowUpdate(3, 1)
	caller.WantDataBytes(3, body[9:10], end)

	// And a caller that leaves meanwhile leaves nothing behind.
	caller.WriteHeaders(5, end, request(hello)...)
	worker.WantHeaders(5, end)
	reply(worker, 5)
	caller.WantFields(5, noEnd, responseHead()...)
	g.wantInFlight(0)
	caller.WriteRST(5, http2.ErrCodeCancel)
}
