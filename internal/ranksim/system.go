package ranksim

import (
	"cmp"
	"time"

	"github.com/cabrank/cabrank/internal/rank"
)

// System is what serves the calls: a rank and its workers.
type System struct {
	// Rank are the options of the rank.
	Rank rank.Options
	// Workers are the endpoints, in the order in which the rank learns of them.
	Workers []Worker
	// QueueTimeout bounds the wait of a call in the queue (R10); 0 means that
	// nothing does.
	QueueTimeout time.Duration
	// Accounts are the terms of the callers, by Call.Caller. Callers beyond
	// them share the common account.
	Accounts []rank.Terms
	// Hedge allows a second attempt of every call, into a free slot for which no call
	// waits for, when the first one runs for longer than HedgeAfter; 0 means
	// than 95 % of the calls of its method do.
	Hedge      bool
	HedgeAfter time.Duration
	// Look is shown the rank ten times a second, if it is there.
	Look func(r *rank.Rank, now time.Duration)
	// Seed chooses the random numbers of callers in a loop; those of other calls are
	// drawn before.
	Seed uint64
}

// Worker is a simulated worker process.
type Worker struct {
	// Slots is the number of calls that the rank may send at a time, at least 1.
	Slots int
	// Threads is how many the worker has; 0 means one for each slot.
	Threads int
	// Least and Most bound slots that adapt, from Slots on; 0 means that they do not.
	Least, Most int
	// Takes returns how long the handler of a call runs that begins now; nil means
	// Call.Service.
	Takes func(c *Call, now time.Duration) time.Duration
	// Late is how long after its answer a handler's thread is free again.
	Late time.Duration
	// OnCancel is the worker's OnCancel for the rank (R5); 0 is the rank's default.
	OnCancel rank.OnCancel
	// RunsOn means that a handler runs to its end after its caller has gone;
	// otherwise it ends with the cancel.
	RunsOn bool
	// Queues means that a call which finds no free thread waits inside the
	// worker, unseen by the rank (Python); otherwise it is refused (Ruby).
	Queues bool
	// Refusing is how long a refusal takes to come back.
	Refusing time.Duration
	// Outages are in order of time and do not overlap.
	Outages []Outage
}

// threads returns how many calls the worker runs at a time.
func (w *Worker) threads() int { return cmp.Or(w.Threads, max(w.Slots, w.Most)) }

// Alike returns n workers that are the same.
func Alike(n int, w Worker) []Worker {
	all := make([]Worker, n)
	for i := range all {
		all[i] = w
	}
	return all
}

// worker is a Worker at work.
type worker struct {
	Worker
	endpoint *rank.Endpoint
	busy     int    // threads that run a handler or are not free yet after one
	queue    []*run // runs that wait for a thread, if it Queues
	running  []*run // runs with a thread
}

// takes returns how long the handler of a call runs here.
func (w *worker) takes(c *Call, now time.Duration) time.Duration {
	if w.Takes == nil {
		return c.Service
	}
	return w.Takes(c, now)
}

// run is one handler of one call at one worker.
//
// Life: made when a lease begins; over when its thread is free.
type run struct {
	worker  *worker
	try     *try   // nil when the answer is not waited for any more
	call    int    // index of the call
	uses    uint32 // counts the uses of this memory
	began   time.Duration
	delayed time.Duration // by outages
	begun   bool
	hedge   bool
}
