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

// A pushback is never more than 32 bits.
func TestLongestPushback(t *testing.T) {
	if got := string(appendCeil(nil, 1<<62, time.Millisecond)); got != strconv.Itoa(1<<31-1) {
		t.Errorf("a pushback of centuries: %s", got)
	}
}
