package relay

import (
	"bytes"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/cabrank/cabrank/internal/testkit"
)

// R3: a replay sends the same headers, bytes and end; grpc-timeout
// says what is left by then.
func TestReplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t)
		_, worker := g.pipeWorker("w1", 1)
		caller := g.pipeCaller()
		list := request(hello, "grpc-timeout", "10S", "x-request-id", "7")
		body := bytes.Repeat(hi(), 5000)
		caller.Batch(func() {
			caller.WriteHeaders(1, noEnd, list...)
			caller.WriteData(1, noEnd, body[:16000])
			caller.WriteData(1, end, body[16000:])
		})
		first := worker.WantHeaders(1, noEnd)
		worker.WantDataBytes(1, body, end)
		pass(time.Second)
		refuseByReset(worker, 1)
		second := worker.WantHeaders(3, noEnd)
		worker.WantDataBytes(3, body, end)
		reply(worker, 3)
		wantReply(caller, 1)
		if was, is := testkit.Value(first, "grpc-timeout"), testkit.Value(second, "grpc-timeout"); was != "10000000u" || is != "8999000u" {
			t.Errorf("grpc-timeout: got %s and %s, want 10000000u and 8999000u", was, is)
		}
		if !slices.EqualFunc(first, second, func(a, b testkit.Field) bool { return a.Name == b.Name && (a == b || a.Name == "grpc-timeout") }) {
			t.Errorf("header lists differ:\n%v\n%v", first, second)
		}
	})
}

// R3: a call that is refused while its caller still sends goes on where it was.
func TestReplayOfUnfinishedRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t)
		_, worker := g.pipeWorker("w1", 1)
		caller := g.pipeCaller()
		caller.WriteHeaders(1, noEnd, request(hello)...)
		worker.WantHeaders(1, noEnd)
		caller.WriteData(1, noEnd, []byte("one "))
		worker.WantDataBytes(1, []byte("one "), noEnd)
		refuseByReset(worker, 1)
		worker.WantHeaders(3, noEnd)
		worker.WantDataBytes(3, []byte("one "), noEnd)
		caller.WriteData(1, end, []byte("two"))
		worker.WantDataBytes(3, []byte("two"), end)
		reply(worker, 3)
		wantReply(caller, 1)
	})
}

// R3: above ReplayBytes a call is not sent again, and a refusal reaches the
// caller as UNAVAILABLE.
func TestNoReplayAboveBound(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Options)
	}{
		{"of one call", func(o *Options) { o.ReplayBytes = 8 << 10 }},
		{"in all", func(o *Options) { o.ReplayTotal = 8 << 10 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newPipeRig(t, c.change)
				_, worker := g.pipeWorker("w1", 1)
				caller := g.pipeCaller()
				body := make([]byte, 8<<10+1)
				caller.WriteHeaders(1, noEnd, request(hello)...)
				caller.WriteData(1, end, body)
				worker.WantHeaders(1, noEnd)
				worker.WantDataBytes(1, body, end)
				worker.WriteRST(1, http2.ErrCodeRefusedStream)
				wantStatus(caller, 1, "14", "cabrank: worker refused the call late")
			})
		})
	}
}

// R4: a refused dial proves that nothing was seen: the call waits for another
// slot, and for the endpoint's next address.
func TestDialRefused(t *testing.T) {
	g := newRig(t)
	gone, _ := testkit.ListenWorker(t)
	dead := g.AddEndpoint("w1", 1, true)
	g.Up(dead, "unix", "/nonexistent/"+gone)
	caller := g.caller()
	caller.WriteHeaders(1, end, request(hello)...)
	testkit.Eventually(t, soon, "the call to be put back", func() bool { return g.counted("moved") > 1 })
	addr, accept := testkit.ListenWorker(t)
	g.Down(dead)
	g.Up(dead, "tcp", addr)
	worker := accept()
	worker.Greet()
	worker.Skip(testkit.WindowUpdate)
	worker.WantHeaders(1, end)
	reply(worker, 1)
	wantReply(caller, 1)
}

// A call whose endpoint cannot be reached is answered when queue.timeout has
// passed (R10).
func TestDialRefusedForEver(t *testing.T) {
	g := newRig(t, withQueue(9, 50*time.Millisecond))
	e := g.AddEndpoint("w1", 1, true)
	g.Up(e, "unix", "/nonexistent/worker")
	caller := g.caller()
	caller.WriteHeaders(1, end, request(hello)...)
	wantStatus(caller, 1, "8", "cabrank: no free slot in time")
}

// R4, R14: what is still in our buffer when the worker says goodbye is taken
// out of it; the worker hears neither of the call nor of its end.
func TestGoAwayMeetsUnsent(t *testing.T) {
	g := newRig(t)
	m := newMemory(t, g, true, 1)
	m.st.do(func() {
		m.drainOutput(m.worker)
		m.feed(m.caller, m.request)
		if len(m.worker.Output()) == 0 {
			t.Error("no request was written")
		}
		m.feed(m.worker, frames(t, func(f *http2.Framer) error { return f.WriteGoAway(0, http2.ErrCodeNo, nil) }))
		if out := m.worker.Output(); len(out) > 0 {
			t.Errorf("left for the worker: %x", out)
		}
	})
	g.wantWaiting(1)
}
