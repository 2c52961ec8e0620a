package relay

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/cabrank/cabrank/internal/testkit"
)

// The parts of a call's time are its whole: queue, worker, and a rest that is
// known here, since it is the caller's doing: it sends slowly at first, and
// takes the answer late. A try that the worker refused is time at a worker.
func TestPartsOfTimeAddUp(t *testing.T) {
	const (
		gathering = 2 * time.Millisecond
		queue     = 700 * time.Millisecond
		refused   = 30 * time.Millisecond
		pause     = time.Millisecond // of the slot, after the refusal (R1)
		service   = 200 * time.Millisecond
		reading   = 400 * time.Millisecond
	)
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t)
		_, worker := g.pipeWorker("w1", 1)
		first, caller := g.pipeCaller(), g.silentCaller()
		caller.Greet(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1})
		caller.Skip(testkit.WindowUpdate)
		first.WriteHeaders(1, end, request("/test.Greeter/First")...)
		worker.WantHeaders(1, end)
		caller.WriteHeaders(1, noEnd, request(hello)...)
		pass(gathering)
		caller.WriteData(1, end, hi())
		pass(queue)
		reply(worker, 1)
		wantReply(first, 1)
		worker.WantHeaders(3, noEnd)
		worker.WantDataBytes(3, hi(), end)
		pass(refused)
		refuseByReset(worker, 3)
		worker.WantHeaders(5, noEnd)
		worker.WantDataBytes(5, hi(), end)
		pass(service)
		reply(worker, 5)
		caller.WantHeaders(1, noEnd)
		caller.WantDataBytes(1, hi()[:1], noEnd)
		pass(reading)
		caller.WriteWindowUpdate(1, 100)
		caller.WantDataBytes(1, hi()[1:], noEnd)
		caller.WantHeaders(1, end)
		synctest.Wait()
		m := g.Stats().of(t, hello)
		wantSeconds(t, "waiting", m.Wait.Sum, queue+pause)
		wantSeconds(t, "at workers", m.Work.Sum, refused+service)
		wantSeconds(t, "in all", m.Seconds.Sum, gathering+queue+refused+pause+service+reading)
	})
}

// wantSeconds allows for 1 %.
func wantSeconds(t *testing.T, what string, got float64, want time.Duration) {
	t.Helper()
	if math.Abs(got-want.Seconds()) > want.Seconds()/100 {
		t.Errorf("%s: %v s, want %v", what, got, want)
	}
}

// Tries at the same time, as of a hedge, count once; calls that never had a slot
// count nothing.
func TestWorkCountsOnce(t *testing.T) {
	var w work
	w.begin(10)
	w.begin(20)
	w.end(50)
	w.end(60)
	w.begin(100)
	w.end(90) // clocks of two shards
	if w.total != 50 {
		t.Errorf("got %v, want 50", w.total)
	}
	g := newRig(t, withQueue(0, time.Second))
	caller := g.caller()
	caller.WriteHeaders(1, end, request(hello)...)
	wantStatus(caller, 1, "8", "cabrank: queue full")
	testkit.Eventually(t, soon, "the call to be counted", func() bool { return g.running() == 0 })
	if m := g.Stats().of(t, otherMethod); m.Work.Counts[0] != 0 || m.Wait.Counts[0] != 1 {
		t.Errorf("a call without a slot: %v at workers, %v waiting", m.Work.Counts, m.Wait.Counts)
	}
}
