package relay

import (
	"strings"
	"testing"
)

// R12: gRPC has no trailers of a request, and grpc-go ends a connection for them. They
// are its end and nothing more, whatever they say and wherever the call is.
func TestRequestTrailers(t *testing.T) {
	for name, fields := range map[string][]string{
		"plain": {"x-sum", "1", "x-sum", "2"},
		"claim": {"x-cabrank-user", "admin", "x-cabrank-socket", "1"},
		"large": {"x-large", strings.Repeat("~", 20<<10)},
	} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t)
			_, accept := g.worker("w1", 1)
			caller := g.caller()
			caller.Batch(func() { // at once, behind a message
				caller.WriteHeaders(1, noEnd, request(hello)...)
				caller.WriteData(1, noEnd, hi())
				caller.WriteHeaders(1, end, fields...)
			})
			worker := accept()
			worker.WantHeaders(1, noEnd)
			worker.WantDataBytes(1, hi(), end)
			reply(worker, 1)
			wantReply(caller, 1)

			caller.WriteHeaders(3, noEnd, request(hello)...) // while it runs
			worker.WantHeaders(3, noEnd)
			caller.WriteHeaders(5, noEnd, request(hello)...) // while it waits
			g.wantWaiting(1)
			caller.WriteHeaders(5, end, fields...)
			caller.WriteHeaders(3, end, fields...)
			worker.WantDataBytes(3, nil, end)
			reply(worker, 3)
			wantReply(caller, 3)
			worker.WantHeaders(5, end)
			reply(worker, 5)
			wantReply(caller, 5)
			caller.WriteHeaders(7, noEnd, request(hello)...) // when it is answered
			worker.WantHeaders(7, noEnd)
			worker.WriteHeaders(7, noEnd, responseHead()...)
			caller.WantFields(7, noEnd, responseHead()...)
			caller.WriteHeaders(7, end, fields...)
			worker.WantDataBytes(7, nil, end)
			worker.WriteHeaders(7, end, "grpc-status", "0")
			caller.WantFields(7, end, "grpc-status", "0")
			caller.WriteHeaders(9, noEnd, plain("POST", "/form")...) // of what is not gRPC as well
			caller.WriteHeaders(9, end, fields...)
			worker.WantHeaders(9, end)
			worker.WriteHeaders(9, end, ":status", "204")
			caller.WantFields(9, end, ":status", "204")
		})
	}
}
