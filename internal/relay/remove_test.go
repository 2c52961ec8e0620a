package relay

import (
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"weak"

	"golang.org/x/net/http2"

	"github.com/cabrank/cabrank/internal/testkit"
)

// A removed endpoint is in no metrics, its calls end or move, and those of others
// go on.
func TestRemoveEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t)
		e, worker := g.pipeWorker("w1", 1)
		caller := g.pipeCaller()
		caller.AnyOrder()
		caller.WriteHeaders(1, end, request(hello)...)
		worker.WantHeaders(1, end)
		_, other := g.pipeWorker("w2", 1)
		caller.WriteHeaders(3, end, request(hello)...)
		other.WantHeaders(1, end)
		caller.WriteHeaders(5, end, request(hello)...)
		g.wantWaiting(1)
		g.RemoveEndpoint(e)
		wantStatus(caller, 1, "14", draining)
		worker.WantRST(1, http2.ErrCodeCancel)
		if all := g.Rank().Endpoints; len(all) != 1 || all[0].Name != "w2" {
			t.Errorf("endpoints: %+v", all)
		}
		reply(other, 1)
		wantReply(caller, 3)
		other.WantHeaders(3, end)
		reply(other, 3)
		wantReply(caller, 5)
	})
}

// R13: a call that is in the middle of a message when its endpoint is removed comes
// to the end of that, and gives back what it holds.
func TestRemoveInMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newCutting(t, 1000)
		x.send(x.message[:7])
		x.gets(x.message[:7])
		x.RemoveEndpoint(x.e)
		x.send(append(x.message[7:], 0))
		x.gets(x.message[7:])
		x.told()
		x.worker.WantRST(1, http2.ErrCodeCancel)
	})
}

// Nothing grows with the number of endpoints that there have been.
func TestRemovedEndpointsAreForgotten(t *testing.T) {
	g := newRig(t, func(o *Options) { o.Shards = 2 })
	addr, accept := testkit.ListenWorker(t)
	var seen []weak.Pointer[Endpoint]
	for i := range 20 {
		e := g.AddEndpoint(fmt.Sprint("w", i), 1, false)
		g.Up(e, "tcp", addr)
		caller := g.caller()
		caller.WriteHeaders(1, end, request(hello)...)
		worker := accept()
		worker.Greet()
		worker.Skip(testkit.WindowUpdate)
		worker.WantHeaders(1, end)
		reply(worker, 1)
		wantReply(caller, 1)
		caller.Close()
		g.RemoveEndpoint(e)
		seen = append(seen, weak.Make(e))
	}
	if n := len(g.allEndpoints()); n != 0 {
		t.Errorf("%d endpoints are left", n)
	}
	g.each(func(st *stand) {
		if n := len(st.upstreams); n != 0 {
			t.Errorf("a stand has %d upstreams", n)
		}
	})
	testkit.Eventually(t, soon, "the memory of all but the last on each shard", func() bool {
		runtime.GC()
		left := 0
		for _, e := range seen {
			if e.Value() != nil {
				left++
			}
		}
		return left <= len(g.stands) // calls for reuse still name them
	})
}
