package ranksim

import (
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/testkit"
)

// one serves calls on one worker.
func one(w Worker, calls ...Call) *Result {
	return Run(System{Rank: rank.Options{QueueLength: 10}, Workers: []Worker{w}}, calls)
}

// slower multiplies the time of every handler.
func slower(times float64) func(*Call, time.Duration) time.Duration {
	return func(c *Call, _ time.Duration) time.Duration { return time.Duration(float64(c.Service) * times) }
}

// stalling adds a second to a share of the handlers.
func stalling(share float64) func(*Call, time.Duration) time.Duration {
	return func(c *Call, _ time.Duration) time.Duration {
		if c.Luck < share {
			return c.Service + time.Second
		}
		return c.Service
	}
}

// What a worker does with calls, slots and cancels, by hand.
func TestWorkers(t *testing.T) {
	t.Parallel()
	two := []Call{{Service: 10 * ms}, {Arrives: ms, Service: 10 * ms}}
	gone := []Call{{Service: 10 * ms, Leaves: 4 * ms}, {Arrives: ms, Service: 10 * ms}}
	for _, tc := range []struct {
		name     string
		worker   Worker
		calls    []Call
		wait     time.Duration // of the second call
		held     time.Duration // by the first
		refusals int
	}{
		{name: "the second waits for the first", worker: Worker{Slots: 1}, calls: two, wait: 9 * ms, held: 10 * ms},
		{name: "or not", worker: Worker{Slots: 2}, calls: two, held: 10 * ms},
		{name: "slow", worker: Worker{Slots: 1, Takes: slower(2)}, calls: two, wait: 19 * ms, held: 20 * ms},
		{
			name: "stall", worker: Worker{Slots: 1, Takes: stalling(0.01)}, calls: two,
			wait: 1009 * ms, held: 1010 * ms,
		},
		{
			// R1: refused at 10 ms, tried again when the slot's pause of 1 ms is over.
			name: "late thread", worker: Worker{Slots: 1, Late: ms / 2}, calls: two,
			wait: 10 * ms, held: 10 * ms, refusals: 1,
		},
		{
			name: "late thread of three", worker: Worker{Slots: 1, Threads: 3, Late: ms / 2}, calls: two,
			wait: 9 * ms, held: 10 * ms,
		},
		{
			// R5: the handler goes on; tries at 4, 5, 7 and 11 ms.
			name: "ghost", worker: Worker{Slots: 1, RunsOn: true, OnCancel: rank.Free}, calls: gone,
			wait: 10 * ms, held: 10 * ms, refusals: 3,
		},
		{name: "cooperative", worker: Worker{Slots: 1, OnCancel: rank.Free}, calls: gone, wait: 3 * ms, held: 4 * ms},
		{
			name: "ghost before a queue inside", worker: Worker{Slots: 1, RunsOn: true, Queues: true, OnCancel: rank.Free},
			calls: gone,
			wait:  9 * ms, held: 10 * ms,
		},
		{
			// R5: nothing is known of the method, so the ghost has a second.
			name: "hold", worker: Worker{Slots: 1, RunsOn: true, OnCancel: rank.Hold}, calls: gone,
			wait: 999 * ms, held: 10 * ms,
		},
		{
			name: "finish", worker: Worker{Slots: 1, RunsOn: true, OnCancel: rank.Finish}, calls: gone,
			wait: 9 * ms, held: 10 * ms,
		},
	} {
		r := one(tc.worker, tc.calls...)
		first, second := r.Records[0], r.Records[1]
		if second.Wait != tc.wait || first.Held != tc.held || r.Refusals != tc.refusals {
			t.Errorf("%s: wait %v, held %v, %d refusals; want %v, %v, %d", tc.name,
				second.Wait, first.Held, r.Refusals, tc.wait, tc.held, tc.refusals)
		}
		testkit.Want(t, second.Ending == Answered && second.Sojourn == second.Wait+second.Held, "%s: the second call: %+v", tc.name, second)
	}
}

// How calls end, by hand.
func TestEndings(t *testing.T) {
	t.Parallel()
	busy := Call{Service: 100 * ms}
	for _, tc := range []struct {
		name   string
		call   Call
		ending Ending
		after  time.Duration
		starts uint8
	}{
		{name: "deadline in the queue", call: Call{Deadline: 50 * ms}, ending: Expired, after: 50 * ms},
		{name: "left the queue", call: Call{Deadline: 50 * ms, Leaves: 20 * ms}, ending: Left, after: 20 * ms},
		{
			name: "deadline at the worker", call: Call{Service: 100 * ms, Deadline: 150 * ms},
			ending: Expired, after: 150 * ms, starts: 1,
		},
		{
			name: "left the worker", call: Call{Service: 100 * ms, Leaves: 120 * ms},
			ending: Left, after: 120 * ms, starts: 1,
		},
		{
			name: "answered in time", call: Call{Service: 100 * ms, Deadline: 201 * ms},
			ending: Answered, after: 200 * ms, starts: 1,
		},
	} {
		r := one(Worker{Slots: 1}, busy, tc.call).Records[1]
		if r.Ending != tc.ending || r.Sojourn != tc.after || r.Starts != tc.starts {
			t.Errorf("%s: %v after %v, %d starts; want %v after %v, %d", tc.name,
				r.Ending, r.Sojourn, r.Starts, tc.ending, tc.after, tc.starts)
		}
		ideal := FirstCome([]Call{busy, tc.call}, 1, Handlers{}).Records[1]
		testkit.Want(t, ideal == r, "%s: the ideal says %+v, want %+v", tc.name, ideal, r)
	}
	full := Run(System{Workers: []Worker{{Slots: 1}}}, []Call{busy, busy})
	if r := full.Records[1]; r.Ending != Refused || r.Reason != rank.QueueFull || r.Sojourn != 0 {
		t.Errorf("no queue: %v (%v) after %v", r.Ending, r.Reason, r.Sojourn)
	}
	impatient := System{Rank: rank.Options{QueueLength: 1}, Workers: []Worker{{Slots: 1}}, QueueTimeout: 30 * ms}
	if r := Run(impatient, []Call{busy, busy}).Records[1]; r.Ending != WaitedTooLong || r.Sojourn != 30*ms {
		t.Errorf("queue timeout: %v after %v", r.Ending, r.Sojourn)
	}
}

func BenchmarkRun(b *testing.B) {
	calls := oneCaller(1, 200_000, 0.9, 4, Mixed()).Draw()
	for b.Loop() {
		Run(System{Rank: rankOptions(), Workers: Alike(4, Worker{Slots: 1})}, calls)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(calls)), "ns/call")
}
