package relay

import (
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/cabrank/cabrank/internal/testkit"
)

const quiet = 5 * time.Minute

func keepAlive(o *Options) { o.KeepAlive = quiet }

// R15: an endpoint that complains is asked half as often, and no local worker
// is asked at all.
func TestKeepAliveCalms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t, keepAlive)
		e := g.AddEndpoint("elsewhere", 9, false)
		first := testkit.NewWorker(t, g.pipe(e))
		first.Greet()
		first.Skip(testkit.WindowUpdate)
		first.WriteGoAway(0, http2.ErrCodeEnhanceYourCalm, "too_many_pings")
		first.WantClosed()
		second := testkit.NewWorker(t, g.attach(e))
		second.Greet()
		second.Skip(testkit.WindowUpdate)
		caller := g.pipeCaller()
		caller.WriteHeaders(1, end, request(hello)...)
		second.WantHeaders(1, end)
		pass(2*quiet - 10*time.Second)
		caller.WriteHeaders(3, end, request(hello)...)
		second.WantHeaders(3, end) // no PING yet
		pass(keepAliveAnswer)
		second.WritePingAck(second.WantPing())
		reply(second, 1)
		reply(second, 3)
		wantReply(caller, 1)
		wantReply(caller, 3)

		g.Down(e)
		_, local := g.pipeWorker("w1", 1)
		caller.WriteHeaders(5, end, request(hello)...)
		local.WantHeaders(1, end)
		pass(10 * quiet)
		reply(local, 1)
		wantReply(caller, 5)
		st := g.stands[0]
		st.do(func() {
			if st.upstreams[0].quiet != 2*quiet || st.upstreams[1].quiet != 0 {
				t.Errorf("silence before a PING: %v and %v", st.upstreams[0].quiet, st.upstreams[1].quiet)
			}
			for range 10 {
				st.upstreams[0].calm(0xb)
			}
			if q := st.upstreams[0].quiet; q != maxKeepAlive {
				t.Errorf("after many complaints %v, want %v", q, maxKeepAlive)
			}
		})
	})
}
