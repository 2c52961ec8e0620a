package relay

import (
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/cabrank/cabrank/internal/testkit"
)

// farCaller connects a caller that is behind a network.
func farCaller(g *rig, address string) *testkit.Peer {
	g.t.Helper()
	p, in := g.pipeFrom(address)
	if !in {
		g.t.Fatal("not let in")
	}
	return p
}

// A caller whose network is gone gives back its slot, and its place in the queue, within
// a minute: it is asked after 30 s of silence, whatever is sent to it meanwhile, and has
// 20 s to answer.
func TestAbsentCallersLoseTheirCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t, withQueue(9, time.Hour))
		_, worker := g.pipeWorker("w1", 1)
		gone := farCaller(g, "192.0.2.7")
		gone.WriteHeaders(1, end, request(hello)...)
		worker.WantHeaders(1, end)
		worker.WriteHeaders(1, noEnd, responseHead()...)
		gone.WantFields(1, noEnd, responseHead()...)
		alsoGone := farCaller(g, "2001:db8::7")
		alsoGone.WriteHeaders(1, end, request(hello)...)
		g.wantWaiting(1)
		began := time.Now()
		pass(20 * time.Second)
		worker.WriteData(1, noEnd, hi()) // a stream that talks is as dead
		gone.WantDataBytes(1, hi(), noEnd)
		gone.WantPing()
		alsoGone.WantPing()
		if asked := time.Since(began); asked < absentAfter-time.Second || asked > absentAfter+absentLooks {
			t.Errorf("asked after %v", asked)
		}
		worker.WantRST(1, http2.ErrCodeCancel)
		if freed := time.Since(began); freed > 55*time.Second {
			t.Errorf("freed after %v", freed)
		}
		gone.WantClosed()
		alsoGone.WantClosed()
		g.wantInFlight(0)
		g.wantWaiting(0)
		if n := g.partedFor(partingAbsent); n != 2 {
			t.Errorf("%d ended as absent, want 2", n)
		}
	})
}

// Nobody is ended who answers, in whatever way; nor is asked who has no call, or no
// network that could be lost.
func TestPresentCallersKeepTheirCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t)
		_, worker := g.pipeWorker("w1", 9)
		farCaller(g, "192.0.2.6") // says nothing, and may
		caller, loops, unix := farCaller(g, "192.0.2.7"), farCaller(g, "127.0.0.1"), g.pipeCaller()
		for i, p := range []*testkit.Peer{caller, loops, unix} {
			p.WriteHeaders(1, end, request(hello)...)
			worker.WantHeaders(uint32(2*i+1), end)
		}
		for range 5 {
			pass(absentAfter / 2)
			caller.WritePingAck(caller.WantPing())
			pass(absentAfter / 2)
			caller.WantPing() // answered a little late, and by another frame
			pass(keepAliveAnswer - time.Second)
			caller.WriteWindowUpdate(1, 1)
		}
		pass(absentAfter + keepAliveAnswer/2)
		caller.WritePingAck(caller.WantPing())
		loops.WantIdle()
		unix.WantIdle()
		for i, p := range []*testkit.Peer{caller, loops, unix} {
			reply(worker, uint32(2*i+1))
			wantReply(p, 1)
		}
		pass(time.Hour / 2)
		caller.WantIdle()
		if n := g.partedFor(partingAbsent); n != 0 {
			t.Errorf("%d ended as absent", n)
		}
	})
}

// The answer to such a PING is not one to a GOAWAY.
func TestPresentCallersAreToldToGoInTwoSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t)
		_, worker := g.pipeWorker("w1", 1)
		caller := farCaller(g, "192.0.2.7")
		caller.WriteHeaders(1, end, request(hello)...)
		worker.WantHeaders(1, end)
		pass(absentAfter / 2)
		whether := caller.WantPing()
		drained := g.drain(time.Minute, nil)
		caller.WantGoAway(http2.ErrCodeNo)
		leave := caller.WantPing()
		caller.WritePingAck(whether)
		caller.WantIdle()
		caller.WritePingAck(leave)
		caller.WantGoAway(http2.ErrCodeNo)
		reply(worker, 1)
		wantReply(caller, 1)
		drained()
	})
}
