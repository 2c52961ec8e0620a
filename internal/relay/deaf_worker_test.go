package relay

import (
	"net"
	"testing"
	"testing/synctest"

	"github.com/cabrank/cabrank/internal/testkit"
)

// R11: a worker that never reads holds back the calls that it was given, and
// no one else's: what waits for it is bounded by the windows of the calls.
// When it goes, what was still in our buffer moves (R4), the rest is lost.
func TestWorkerNeverReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const calls = 60
		g := newPipeRig(t)
		e, bad, nc := g.foreignConn("unruly", calls)
		bad.StopReading()
		caller, beside := g.pipeCaller(), g.pipeCaller()
		caller.AnyOrder()
		body := make([]byte, 16384)
		for n := range uint32(calls) {
			caller.WriteHeaders(2*n+1, noEnd, request(hello)...)
			synctest.Wait() // the first is in the transport's hands, the others are in our buffer
			for range 4 {   // the whole window
				caller.WriteData(2*n+1, noEnd, body)
			}
		}
		g.wantRunning(e, calls)
		// One window of each call, and what went out meanwhile once more, in
		// buffers of a power of two.
		if used, most := g.budget.Used(), int64(calls*2*streamWindow+2*outputHigh); used > most {
			t.Errorf("%d bytes are in use, want at most %d", used, most)
		}
		_, good := g.foreign("good", calls+1)
		for n := range uint32(20) {
			beside.WriteHeaders(2*n+1, end, request(hello)...)
			good.WantHeaders(2*n+1, end)
			reply(good, 2*n+1)
			wantReply(beside, 2*n+1)
		}
		g.wantRunning(e, calls)
		nc.Close()
		wantMovedOrLost(t, g, caller, good, calls)
	})
}

// wantMovedOrLost has the good worker answer what moves to it, until each of
// the caller's calls has one end.
func wantMovedOrLost(t *testing.T, g *rig, caller, good *testkit.Peer, calls int) {
	t.Helper()
	good.AnyOrder()
	good.Skip(testkit.RST, testkit.Data)
	synctest.Wait()
	moved := int(g.counted("moved"))
	if moved != calls-1 {
		t.Errorf("%d of %d calls have moved", moved, calls)
	}
	for n := range uint32(moved) {
		good.WantHeaders(41+2*n, noEnd)
		good.WriteHeaders(41+2*n, end, append(responseHead(), "grpc-status", "0")...)
	}
	ends := map[string]int{}
	caller.Skip(testkit.RST)
	for n := range uint32(calls) {
		fields := caller.WantHeaders(2*n+1, end)
		ends[testkit.Value(fields, "grpc-status")+" "+testkit.Value(fields, "grpc-message")]++
	}
	if ends["0 "] != moved || ends["14 cabrank: worker lost"] != calls-moved {
		t.Errorf("%d calls have moved; ends: %v", moved, ends)
	}
	caller.WantIdle()
	g.wantInFlight(0)
}

// foreign brings in an endpoint that cabrank did not start.
func (g *rig) foreign(name string, slots int) (*Endpoint, *testkit.Peer) {
	g.t.Helper()
	e, p, _ := g.foreignConn(name, slots)
	return e, p
}

// foreignConn returns the worker's connection, too: closed by itself, it ends
// without anything more being read from it.
func (g *rig) foreignConn(name string, slots int) (*Endpoint, *testkit.Peer, net.Conn) {
	g.t.Helper()
	e := g.AddEndpoint(name, slots, false)
	far := g.pipe(e)
	p := testkit.NewWorker(g.t, far)
	p.Greet()
	p.Skip(testkit.WindowUpdate)
	return e, p, far
}

// wantRunning says how many leases an endpoint has.
func (g *rig) wantRunning(e *Endpoint, n int) {
	g.t.Helper()
	synctest.Wait()
	if got := g.Activity(e).InFlight; got != n {
		g.t.Errorf("%s has %d calls, want %d", e.name, got, n)
	}
}
