package relay

import (
	"testing"

	"golang.org/x/net/http2"
)

// RFC 9113 8.1.1: a request with more or less content than its content-length
// says ends where that shows, on both sides; the worker never sees its end.
func TestWrongContentLengthOfACaller(t *testing.T) {
	g := newRig(t)
	_, accept := g.worker("w", 2)
	caller := g.caller()
	for i, body := range []string{"more than four", "few"} {
		stream := uint32(2*i + 1)
		caller.WriteHeaders(stream, noEnd, plain("POST", "/", "content-length", "4")...)
		caller.WriteData(stream, end, []byte(body))
		caller.WantRST(stream, http2.ErrCodeProtocol)
	}
	caller.WriteHeaders(5, end, plain("POST", "/", "content-length", "4")...)
	caller.WantRST(5, http2.ErrCodeProtocol)

	// One that was sent on is taken back.
	caller.WriteHeaders(7, noEnd, plain("POST", "/", "content-length", "4")...)
	worker := accept()
	up := worker.WantFrame().Stream
	caller.WriteData(7, end, []byte("few"))
	caller.WantRST(7, http2.ErrCodeProtocol)
	worker.WantRST(up, http2.ErrCodeCancel)
	g.wantInFlight(0)
}

// The same of a worker's answer: the caller is told that it is broken, in the
// form that the state of the answer allows (R13).
func TestWrongContentLengthOfAWorker(t *testing.T) {
	g := newRig(t)
	_, accept := g.worker("w", 1)
	caller := g.caller()

	caller.WriteHeaders(1, end, plain("GET", "/")...)
	worker := accept()
	worker.WantHeaders(1, end)
	worker.WriteHeaders(1, end, ":status", "200", "content-length", "4")
	worker.WantRST(1, http2.ErrCodeProtocol)
	if status := caller.WantHeaders(1, noEnd)[0].Value; status != "502" {
		t.Errorf("the caller of an answer without its content gets %s", status)
	}
	caller.WantData(1, end)

	caller.WriteHeaders(3, end, plain("GET", "/")...)
	worker.WantHeaders(3, end)
	worker.WriteHeaders(3, noEnd, ":status", "200", "content-length", "4")
	caller.WantFields(3, noEnd, ":status", "200", "content-length", "4")
	worker.WriteData(3, end, []byte("more than four"))
	worker.WantRST(3, http2.ErrCodeProtocol)
	caller.WantRST(3, http2.ErrCodeInternal)
}

// RFC 9110 9.3.2: the answer to HEAD says how long that to GET would be, also
// when the call has been moved to another worker before.
func TestContentLengthOfHEAD(t *testing.T) {
	g := newRig(t)
	_, accept := g.worker("w", 1)
	caller := g.caller()
	caller.WriteHeaders(1, end, plain("HEAD", "/")...)
	worker := accept()
	worker.WantHeaders(1, end)
	worker.WriteRST(1, http2.ErrCodeRefusedStream)
	worker.WantHeaders(3, end)
	worker.WriteHeaders(3, end, ":status", "200", "content-length", "1234")
	caller.WantFields(1, end, ":status", "200", "content-length", "1234")

	// Nothing of it is left for the next call.
	caller.WriteHeaders(3, end, plain("GET", "/")...)
	worker.WantHeaders(5, end)
	worker.WriteHeaders(5, noEnd, ":status", "200", "content-length", "2")
	worker.WriteData(5, end, []byte("ok"))
	caller.WantFields(3, noEnd, ":status", "200", "content-length", "2")
	caller.WantDataBytes(3, []byte("ok"), end)
}

// RFC 9113 5.1: trailers that were under way to a call which cabrank has
// answered meanwhile cost nobody anything, however many came between.
func TestLateTrailersOfManyCalls(t *testing.T) {
	const calls = 100
	g := newRig(t, func(o *Options) { o.QueueLength = 0 })
	caller := g.caller()
	for i := range uint32(calls) {
		caller.WriteHeaders(2*i+1, noEnd, request(hello)...)
		caller.WantHeaders(2*i+1, end)
		caller.WantRST(2*i+1, http2.ErrCodeNo)
	}
	for i := range uint32(calls) {
		caller.WriteData(2*i+1, noEnd, hi())
		caller.WriteHeaders(2*i+1, end, "late", "yes")
	}
	caller.WantIdle()
	askHealth(caller, 2*calls+1, checkPath, "")
	caller.WantHeaders(2*calls+1, noEnd)
}
