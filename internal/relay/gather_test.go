package relay

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

// R9: a call joins the rank when its request has ended, when its first message
// is complete, or after 5 ms, whichever comes first; a worker gets it whole.
func TestCallsGather(t *testing.T) {
	for name, row := range map[string]struct {
		send  func(caller *testkit.Peer)
		want  func(worker *testkit.Peer)
		after time.Duration
	}{
		"ended": {
			send: func(caller *testkit.Peer) { caller.WriteData(1, end, hi()[:2]) },
			want: func(worker *testkit.Peer) {
				worker.WantHeaders(1, noEnd)
				worker.WantDataBytes(1, hi()[:2], end)
			},
		},
		"first message": {
			send: func(caller *testkit.Peer) {
				caller.WriteData(1, noEnd, hi()[:2])
				caller.WriteData(1, noEnd, hi()[2:])
			},
			want: func(worker *testkit.Peer) {
				worker.WantHeaders(1, noEnd)
				worker.WantDataBytes(1, hi(), noEnd)
			},
		},
		"trailers": {
			send: func(caller *testkit.Peer) { caller.WriteHeaders(1, end, "x-last", "1") },
			want: func(worker *testkit.Peer) {
				worker.WantHeaders(1, noEnd)
				worker.WantFields(1, end, "x-last", "1")
			},
		},
		"headers first": {
			send:  func(*testkit.Peer) {},
			want:  func(worker *testkit.Peer) { worker.WantHeaders(1, noEnd) },
			after: gatherFor,
		},
		"half a message": {
			send: func(caller *testkit.Peer) { caller.WriteData(1, noEnd, hi()[:2]) },
			want: func(worker *testkit.Peer) {
				worker.WantHeaders(1, noEnd)
				worker.WantDataBytes(1, hi()[:2], noEnd)
			},
			after: gatherFor,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newPipeRig(t)
				_, worker := g.pipeWorker("w1", 1)
				caller := g.pipeCaller()
				began := time.Now()
				caller.WriteHeaders(1, noEnd, request(hello)...)
				worker.WantIdle()
				row.send(caller)
				row.want(worker)
				wantTook(t, began, row.after)
				caller.WriteRST(1, 8)
				worker.WantRST(1, 8)
			})
		})
	}
}

// R9: what ends a call that gathers ends it without a worker.
func TestEndsWhileGathering(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t)
		_, worker := g.pipeWorker("w1", 1)
		caller := g.pipeCaller()
		caller.WriteHeaders(1, noEnd, request(hello)...)
		caller.WriteRST(1, 8)
		caller.WriteHeaders(3, noEnd, request(hello, "grpc-timeout", "2m")...)
		wantStatus(caller, 3, "4", "cabrank: deadline exceeded in queue")
		worker.WantIdle()
	})
}
