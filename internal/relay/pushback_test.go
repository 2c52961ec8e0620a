package relay

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

// wantPushback has the caller take an answer of cabrank's own that says when to
// try again.
func wantPushback(caller *testkit.Peer, stream uint32, code, text, ms string) {
	caller.WantFields(stream, end, ":status", "200", "content-type", "application/grpc",
		"grpc-status", code, "grpc-message", text, "grpc-retry-pushback-ms", ms)
}

// R16: a caller above its rate is told when it may begin another call, or that
// its deadline comes first; callers that are not gRPC are told in seconds. Other
// callers do not notice.
func TestRateLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t, func(o *Options) {
			o.Keys = Keys{By: ByMetadata, Metadata: "x-tenant", Rate: 2, Burst: 3}
		})
		_, worker := g.pipeWorker("w1", 9)
		caller := g.pipeCaller()
		tenant := func(more ...string) []string { return request(hello, append(more, "x-tenant", "a")...) }
		answered(caller, worker, tenant(), tenant(), tenant())
		caller.WriteHeaders(7, end, tenant()...)
		wantPushback(caller, 7, "8", "cabrank: rate limit", "500")
		caller.WriteHeaders(9, end, tenant("grpc-timeout", "499m")...)
		wantPushback(caller, 9, "8", "cabrank: rate limit", "-1")
		caller.WriteHeaders(11, end, plain("HEAD", "/page", "x-tenant", "a")...)
		caller.WantFields(11, end, ":status", "429", "content-type", "text/plain; charset=utf-8",
			"content-length", "20", "retry-after", "1")
		caller.WriteHeaders(13, end, request(hello, "x-tenant", "b")...)
		worker.WantHeaders(7, end)
		reply(worker, 7)
		wantReply(caller, 13)
		pass(500 * time.Millisecond)
		caller.WriteHeaders(15, end, tenant()...)
		worker.WantHeaders(9, end)
		reply(worker, 9)
		wantReply(caller, 15)
		if n := g.counted("rate_limit"); n != 3 {
			t.Errorf("rate_limit counted %d times", n)
		}
	})
}

// A caller with as many calls as it may have is refused, waiting ones included,
// until one of them has ended; nobody knows when that is.
func TestTooManyCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t, func(o *Options) { o.Keys = Keys{By: ByAuthority, Concurrent: 2} })
		_, worker := g.pipeWorker("w1", 1)
		caller := g.pipeCaller()
		caller.WriteHeaders(1, end, request(hello)...)
		worker.WantHeaders(1, end)
		caller.WriteHeaders(3, end, request(hello)...)
		g.wantWaiting(1)
		caller.WriteHeaders(5, end, request(hello)...)
		wantStatus(caller, 5, "8", "cabrank: too many calls")
		reply(worker, 1)
		wantReply(caller, 1)
		worker.WantHeaders(3, end)
		caller.WriteHeaders(7, end, request(hello)...)
		g.wantWaiting(1)
		reply(worker, 3)
		wantReply(caller, 3)
		worker.WantHeaders(5, end)
		reply(worker, 5)
		wantReply(caller, 7)
		if n := g.counted("too_many_calls"); n != 1 {
			t.Errorf("too_many_calls counted %d times", n)
		}
	})
}

// busyQueue makes the relay learn that a call takes 10 ms, and that its one slot
// is handed over as often, and leaves three calls waiting for it.
func busyQueue(caller, worker *testkit.Peer) {
	const alone, together = 25, 30
	serve := func(n uint32) {
		worker.WantHeaders(1+2*n, end)
		pass(10 * time.Millisecond)
		worker.WriteHeaders(1+2*n, end, append(responseHead(), "grpc-status", "0")...)
		caller.WantHeaders(1+2*n, end)
	}
	for n := range uint32(alone) {
		caller.WriteHeaders(1+2*n, end, request(hello)...)
		serve(n)
	}
	for n := range uint32(together) {
		caller.WriteHeaders(1+2*(alone+n), end, request(hello)...)
	}
	for n := range uint32(together - 4) {
		serve(alone + n)
	}
	worker.WantHeaders(1+2*(alone+together-4), end)
}

// R16: who is refused for the length of the queue is told in which time it
// drains, if its deadline allows; who is refused for its deadline is told not to
// come again.
func TestQueuePushback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t, withQueue(29, time.Minute))
		_, worker := g.pipeWorker("w1", 1)
		caller := g.pipeCaller()
		busyQueue(caller, worker)
		other := g.pipeCaller()
		other.WriteHeaders(1, end, request(hello, "grpc-timeout", "30m")...)
		wantPushback(other, 1, "4", "cabrank: deadline would pass", "-1")
		for n := range uint32(26) {
			other.WriteHeaders(3+2*n, end, request(hello)...)
		}
		other.WriteHeaders(101, end, request(hello)...)
		wantPushback(other, 101, "8", "cabrank: queue full", "290")
		other.WriteHeaders(103, end, plain("HEAD", "/page")...)
		other.WantFields(103, end, ":status", "503", "content-type", "text/plain; charset=utf-8",
			"content-length", "20", "retry-after", "1")
		if n := g.counted("deadline_shed"); n != 1 {
			t.Errorf("deadline_shed counted %d times", n)
		}
		other.Close()
		caller.Close()
		worker.Close()
	})
}

// Pushbacks are spread over ±20 %, rounded up, and never more than 32 bits.
func TestPushbackIsSpread(t *testing.T) {
	for _, c := range []struct {
		random float64
		want   string
	}{{0, "400"}, {.5, "500"}, {.9999, "600"}} {
		synctest.Test(t, func(t *testing.T) {
			g := newPipeRig(t, func(o *Options) {
				o.Keys = Keys{Rate: 2, Burst: 1}
				o.Random = func() float64 { return c.random }
			})
			_, worker := g.pipeWorker("w1", 9)
			caller := g.pipeCaller()
			answered(caller, worker, request(hello))
			caller.WriteHeaders(3, end, request(hello)...)
			wantPushback(caller, 3, "8", "cabrank: rate limit", c.want)
		})
	}
	if got := string(appendCeil(nil, 1<<62, time.Millisecond)); got != strconv.Itoa(1<<31-1) {
		t.Errorf("a pushback of centuries: %s", got)
	}
}
