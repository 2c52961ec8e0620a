package relay

import (
	"fmt"
	"runtime"
	"testing"
	"weak"

	"github.com/cabrank/cabrank/internal/testkit"
)

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
	testkit.Equal(t, len(g.allEndpoints()), 0, "endpoints are left")
	g.each(func(st *shardState) {
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
		return left <= len(g.shards) // calls for reuse still name them
	})
}
