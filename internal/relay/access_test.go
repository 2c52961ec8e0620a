package relay

import (
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/cabrank/cabrank/internal/grpcwire"
)

// Each finished call is told once, with what an incident needs, whoever has ended it.
func TestAccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var told []Access
		var paths []string
		g := newPipeRig(t, withQueue(9, 20*time.Millisecond), func(o *Options) {
			o.Access = func(a *Access) {
				mu.Lock()
				defer mu.Unlock()
				told, paths = append(told, *a), append(paths, string(a.Path))
			}
		})
		_, worker := g.pipeWorker("worker-1", 1)
		caller := g.pipeCaller()
		caller.WriteHeaders(1, noEnd, request(hello)...)
		caller.WriteData(1, end, hi())
		worker.WantHeaders(1, noEnd)
		worker.WantDataBytes(1, hi(), end)
		caller.WriteHeaders(3, end, append(request(hello), hopsName, "2")...)
		pass(5 * time.Millisecond)
		reply(worker, 1)
		caller.WantFields(1, noEnd, responseHead()...)
		caller.WantDataBytes(1, hi(), noEnd)
		caller.WantFields(1, end, "grpc-status", "0")
		worker.WantHeaders(3, end)
		caller.WriteHeaders(5, end, request(hello)...)
		pass(25 * time.Millisecond)
		caller.WantHeaders(5, end)
		caller.WriteRST(3, http2.ErrCodeCancel)
		pass(time.Millisecond)
		mu.Lock()
		defer mu.Unlock()
		want := []Access{
			{GRPC: true, Code: grpcwire.OK, Worker: "worker-1", Took: 5 * time.Millisecond, Worked: 5 * time.Millisecond, Received: int64(len(hi())), Sent: int64(len(hi()))},
			{GRPC: true, Code: grpcwire.ResourceExhausted, Reason: "queue_timeout", Took: 20 * time.Millisecond, Waited: 20 * time.Millisecond},
			{GRPC: true, Code: grpcwire.Cancelled, Worker: "worker-1", Hops: 2, Waited: 5 * time.Millisecond},
		}
		if len(told) != len(want) {
			t.Fatalf("%d calls are told: %+v", len(told), told)
		}
		for i, a := range told {
			if paths[i] != hello || a.Caller.Door != socketDoor {
				t.Errorf("call %d: path %q, door %q", i, paths[i], a.Caller.Door)
			}
			a.Path, a.Caller = nil, Caller{}
			if i == 2 {
				a.Took, a.Worked = 0, 0
			}
			if !reflect.DeepEqual(a, want[i]) {
				t.Errorf("call %d is\n%+v\nwant\n%+v", i, a, want[i])
			}
		}
	})
}
