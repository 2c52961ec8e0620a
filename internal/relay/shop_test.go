package relay

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

// shop is a worker with a process of its own, as far as one can have that here.
type shop struct {
	head   atomic.Pointer[http.Header] // of its last call
	ln     net.Listener
	server http.Server
	served chan error
}

// openShop starts a worker that answers with so many messages, one a millisecond.
func openShop(t *testing.T, messages int) *shop {
	t.Helper()
	s := &shop{ln: testkit.Listen(t), served: make(chan error, 1)}
	s.open(func(w http.ResponseWriter, r *http.Request) {
		s.head.Store(&r.Header)
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/grpc")
		for range messages {
			<-time.After(time.Millisecond)
			_, _ = w.Write(hi())
			_ = http.NewResponseController(w).Flush()
		}
		w.Header().Set(http.TrailerPrefix+"Grpc-Status", "0")
	})
	t.Cleanup(s.close)
	return s
}

func (s *shop) open(answer http.HandlerFunc) {
	s.server.Protocols, s.server.Handler = overHTTP2(), answer
	go func() { s.served <- s.server.Serve(s.ln) }() // ended by close
}

// serves has the shop be a ready endpoint of the relay.
func (s *shop) serves(g *rig, name string, slots int) {
	g.Up(g.AddEndpoint(name, slots, true), "tcp", s.ln.Addr().String())
}

// close ends the worker at once, as KILL would.
func (s *shop) close() {
	_ = s.server.Close()
	if err := <-s.served; err != nil {
		s.served <- err // for the next one to close it
	}
}

// draining is the answer to calls of a worker that was cut off.
const draining = "cabrank: worker draining"

// R17, "0 failures in planned changes": under callers that never pause workers are
// replaced one after the other, at new places and at places used before. Not one
// call fails, and none is answered by Cabrank.
func TestRollsLoseNothing(t *testing.T) {
	for _, forced := range []bool{false, true} {
		t.Run(fmt.Sprint("forced ", forced), func(t *testing.T) {
			rule := MethodRule{Pattern: hello, Idempotent: forced, Retries: 5}
			g := newRig(t, func(o *Options) { o.Shards, o.Methods = 2, []MethodRule{rule} })
			var shops []*shop
			var places []*Endpoint
			for i := range 3 { // one of them is a spare
				places = append(places, g.AddEndpoint(fmt.Sprint("w", i), 2, true))
				shops = append(shops, openShop(t, 3))
				if i > 0 {
					g.Up(places[i], "tcp", shops[i].ln.Addr().String())
				}
			}
			crowd := newCrowd(t, "tcp", g.addr)
			crowd.messages, crowd.cut = 3, forced
			crowd.start(t)
			for roll := range 12 {
				crowd.made(t, 20)
				in, out := roll%3, (roll+1)%3
				shops[in].close()
				shops[in] = openShop(t, 3)
				g.Up(places[in], "tcp", shops[in].ln.Addr().String())
				g.Down(places[out])
				if !forced {
					testkit.Eventually(t, soon, "the last call", func() bool { return g.Activity(places[out]).InFlight == 0 })
				}
				g.Cut(places[out])
				testkit.Eventually(t, soon, "the rest", func() bool { return g.Activity(places[out]).InFlight == 0 })
				shops[out].close()
			}
			crowd.made(t, 20)
			crowd.stop()
			for _, token := range []string{"worker_lost", "queue_timeout", "no_worker", "bad_response", "refused_late"} {
				if n := g.counted(token); n != 0 {
					t.Errorf("%s: %d", token, n)
				}
			}
			// By force a stream that its caller has seen the beginning of is cut off.
			if n := g.counted("worker_draining"); n != 0 && !forced {
				t.Errorf("%d calls were cut off", n)
			}
		})
	}
}
