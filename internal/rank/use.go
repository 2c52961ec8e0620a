package rank

import (
	"math"
	"time"
)

// use sums up how many calls ask for slots, and the slot time that they get.
//
// Concurrency: belongs to the rank's lock.
type use struct {
	arrived uint64        // see Use
	ended   uint64        // see Use
	done    time.Duration // slot time of leases and ghosts that have ended
	running int           // leases and ghosts
	starts  time.Duration // sum of the instants at which they began
	// The sum may overflow the type. That does no harm, for only its difference to the
	// same number of later instants counts.
}

func (u *use) begin(now time.Duration) {
	u.running++
	u.starts += now
}

func (u *use) end(began, now time.Duration) {
	u.running--
	u.starts -= began
	u.done += max(now-began, 0)
}

// released notes the end of a lease.
func (u *use) released(o Outcome, began, now time.Duration) {
	u.end(began, now)
	if o != RefusedByWorker && o != Lost && o != NotSent {
		u.ended++
	}
}

// Use is the demand for slots and the slot time that calls have had, so that its reader
// can apply Little's law to the differences between two readings: the mean number of
// slots in use is SlotTime over the time between, the mean run is SlotTime over Ended,
// and the demand is Arrived times the mean run.
//
// Shape: Arrived, Ended and SlotTime only grow, the others are of the instant.
type Use struct {
	// Arrived counts the attempts that have asked for a slot: calls that the terms of
	// their account allow, even if they were refused after that, retries, and hedges that
	// were sent. A call that is put back (Rejoin) counts once.
	Arrived uint64
	// Ended counts the attempts that have run and given their slot back.
	Ended uint64
	// SlotTime is the sum of the times that calls have had slots: from the grant to the
	// release, or up to now, also where the worker has refused or never seen the call;
	// and of the times of ghosts (R5).
	SlotTime time.Duration

	Slots   int           // of endpoints that get calls, as many as may be used
	Busy    int           // slots of calls and ghosts, on any endpoint
	Ready   int           // ready endpoints
	Waiting int           // calls in the queue
	Oldest  time.Duration // the longest wait of a waiting call; 0: no call waits
}

// Use returns the present values. It costs O(waiting accounts) under the lock.
func (r *Rank) Use(now time.Duration) Use {
	r.mu.Lock()
	defer r.mu.Unlock()
	u := &r.use
	return Use{
		Arrived: u.arrived, Ended: u.ended,
		SlotTime: u.done + time.Duration(u.running)*now - u.starts,
		Slots:    r.capacity, Busy: u.running,
		Ready: r.Ready(), Waiting: r.Waiting(), Oldest: r.oldest(now),
	}
}

// oldest returns the longest wait of a waiting call.
func (r *Rank) oldest(now time.Duration) (oldest time.Duration) {
	for q := range r.queues {
		oldest = max(oldest, q.oldest(now))
	}
	return oldest
}

func (q *queue) oldest(now time.Duration) (oldest time.Duration) {
	q.eachFlow(func(f *flow) {
		t := f.list.first
		oldest = max(oldest, t.waited+now-t.joined)
	})
	return oldest
}

const (
	// usageFor is the time over which the means are taken: a value that is this old counts
	// 1/e.
	usageFor = time.Second
	// usageFolds is the step in which the means fade.
	usageFolds = usageFor / 100
)

// usage is how many slots an account or a level has, ghosts included, and how many it
// gives back.
//
// All means fade alike, so that the difference of two of them is that of the others.
// Concurrency: belongs to the rank's lock.
type usage struct {
	current int     // slots, now
	mean    float64 // mean of held
	rate    float64 // slots that are given back in a second

	ended      int           // slots given back since folded
	correction time.Duration // what is to be subtracted from held times the time since folded
	folded     time.Duration // when held was last added to the means
}

// change notes that n slots more are in use from now on.
func (l *usage) change(n int, now time.Duration) {
	l.pass(now)
	l.add(n, now)
}

// add is change for a caller that has called pass.
func (l *usage) add(n int, now time.Duration) {
	l.current += n
	l.correction += time.Duration(n) * (now - l.folded)
}

// pass lets time go by.
func (l *usage) pass(now time.Duration) {
	if now-l.folded >= usageFolds {
		l.fold(now)
	}
}

// fold adds the slots in use since the last fold to the means.
func (l *usage) fold(now time.Duration) {
	passed := now - l.folded
	held := time.Duration(l.current)*passed - l.correction
	old := math.Exp(-float64(passed) / float64(usageFor))
	l.mean = l.mean*old + float64(held)/float64(passed)*(1-old)
	l.rate = l.rate*old + float64(l.ended)/passed.Seconds()*(1-old)
	l.ended, l.correction, l.folded = 0, 0, now
}
