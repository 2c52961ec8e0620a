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

// elsewhere brings in an endpoint that cabrank has not started.
func elsewhere(g *rig) *testkit.Peer {
	p := testkit.NewWorker(g.t, g.pipe(g.AddEndpoint("elsewhere", 9, false)))
	p.Greet()
	p.Skip(testkit.WindowUpdate)
	return p
}

// R15: a connection without calls is never sent a PING; one with a call is when
// nothing was heard for so long, and an answer keeps it.
func TestKeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t, keepAlive)
		worker := elsewhere(g)
		caller := g.pipeCaller()
		pass(10*quiet + quiet/2)
		caller.WriteHeaders(1, end, request(hello)...)
		worker.WantHeaders(1, end) // with no PING before it
		pass(quiet/2 + keepAliveAnswer/2)
		worker.WritePingAck(worker.WantPing())
		pass(quiet - time.Second)
		reply(worker, 1)
		wantReply(caller, 1)
		caller.WriteHeaders(3, end, request(hello)...)
		worker.WantHeaders(3, end) // the answer to the first was a sign of life
		pass(quiet + time.Second)
		reply(worker, 3) // and instead of an answer any other will do
		wantReply(caller, 3)
		worker.WantPing()
		caller.WriteHeaders(5, end, request(hello)...)
		worker.WantHeaders(5, end)
		pass(keepAliveAnswer)
		reply(worker, 5)
		wantReply(caller, 5)
	})
}

// R4, R15: no answer ends the connection: its calls are lost, the next get
// another one.
func TestKeepAliveUnanswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t, keepAlive)
		e := g.AddEndpoint("elsewhere", 9, false)
		spare := testkit.NewWorker(t, g.pipe(e))
		spare.Greet()
		spare.Skip(testkit.WindowUpdate)
		dead := testkit.NewWorker(t, g.attach(e))
		dead.Greet()
		dead.Skip(testkit.WindowUpdate)
		caller := g.pipeCaller()
		caller.WriteHeaders(1, end, request(hello)...)
		dead.WantHeaders(1, end)
		pass(2 * quiet)
		began := time.Now()
		dead.WantPing()
		wantStatus(caller, 1, "14", "cabrank: worker lost")
		if took := time.Since(began); took > keepAliveAnswer+time.Second {
			t.Errorf("took %v", took)
		}
		dead.WantClosed()
		caller.WriteHeaders(3, end, request(hello)...)
		spare.WantHeaders(1, end)
		reply(spare, 1)
		wantReply(caller, 3)
	})
}

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
