package relay

import (
	"testing"
	"testing/synctest"
	"time"
)

// R15: the pause after a failed dial doubles up to a second, a fifth shorter or
// longer.
func TestDialPause(t *testing.T) {
	var b backOff
	now := time.Hour
	if b.waits(now) {
		t.Error("the first attempt waits")
	}
	for _, millis := range []int{20, 40, 80, 160, 320, 640, 1000, 1000, 1000} {
		want := time.Duration(millis) * time.Millisecond
		for random, part := range map[float64]float64{0: 0.8, 0.5: 1, 1: 1.2} {
			after := b
			after.failed(now, random)
			if got := after.until - now; got != time.Duration(float64(want)*part) {
				t.Errorf("pause %v for the random number %v, want %v", got, random, time.Duration(float64(want)*part))
			}
		}
		b.failed(now, 0.5)
		if !b.waits(b.until-1) || b.waits(b.until) {
			t.Error("it does not last until its end")
		}
		now = b.until
	}
}

// R15, R10: an endpoint that cannot be reached, though it should be ready, is
// not dialed for every call. They wait in the queue and go to another.
func TestUnreachableEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t, func(o *Options) { o.QueueTimeout = 10 * time.Second })
		e := g.AddEndpoint("w1", 3, true)
		g.Up(e, "none", "") // dials fail at once
		caller := g.pipeCaller()
		began := time.Now()
		for stream := uint32(1); stream < 20; stream += 2 {
			caller.WriteHeaders(stream, end, request(hello)...)
		}
		pass(5 * time.Second)
		if n := g.dials().failures; n < 5 || n > 15 {
			t.Errorf("%d dials in %v, want one a second", n, time.Since(began))
		}
		_, other := g.pipeWorker("w2", 20)
		caller.AnyOrder()
		for n := range uint32(10) {
			other.WantHeaders(2*n+1, end)
			reply(other, 2*n+1)
		}
		for n := range uint32(10) {
			caller.WantFields(2*n+1, noEnd, responseHead()...)
			caller.WantDataBytes(2*n+1, hi(), noEnd)
			caller.WantFields(2*n+1, end, "grpc-status", "0")
		}
		g.Up(e, "none", "") // a new process, or a new address
		if g.dials() != (backOff{}) {
			t.Error("what was said of the old address holds for the new one")
		}
	})
}

// dials returns what is known of the attempts to reach the first endpoint.
func (g *rig) dials() (b backOff) {
	st := g.stands[0]
	st.do(func() { b = st.upstreams[0].dials })
	return b
}

// R15: what a user's environment says of proxies does not concern the workers.
func TestNoProxy(t *testing.T) {
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "ALL_PROXY", "GRPC_PROXY"} {
		t.Setenv(name, "http://127.0.0.1:1")
	}
	g := newRig(t)
	_, accept := g.endpoint("elsewhere", 1, false)
	caller := g.caller()
	caller.WriteHeaders(1, end, request(hello)...)
	worker := accept()
	worker.WantHeaders(1, end)
	reply(worker, 1)
	wantReply(caller, 1)
}

// R15: a call that meets endpoints which cannot be reached passes all of them in
// one step, however many slots they have, and counts as moved once.
func TestUnreachableSlotsArePassedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t)
		var out []*Endpoint
		for range 3 {
			e := g.AddEndpoint("out", 1000, true)
			g.Up(e, "none", "") // dials fail at once
			out = append(out, e)
		}
		caller := g.pipeCaller()
		caller.AnyOrder()
		for stream := uint32(1); stream <= 7; stream += 2 { // they have the endpoints dialed
			caller.WriteHeaders(stream, end, request(hello)...)
		}
		synctest.Wait()
		before := g.counted("moved")
		caller.WriteHeaders(9, end, request(hello)...)
		synctest.Wait()
		if moved := g.counted("moved") - before; moved > 1 || g.Waiting() != 5 {
			t.Errorf("one call counts %d moves; %d wait", moved, g.Waiting())
		}
		paused := 0
		for _, e := range g.Rank().Endpoints {
			paused += e.Paused
		}
		if paused != 3000 {
			t.Errorf("%d slots pause, want all", paused)
		}
		for _, e := range out {
			g.Down(e)
		}
		_, worker := g.pipeWorker("w1", 5)
		for n := range uint32(5) {
			worker.WantHeaders(2*n+1, end)
			reply(worker, 2*n+1)
		}
		for n := range uint32(5) {
			caller.WantFields(2*n+1, noEnd, responseHead()...)
			caller.WantDataBytes(2*n+1, hi(), noEnd)
			caller.WantFields(2*n+1, end, "grpc-status", "0")
		}
	})
}
