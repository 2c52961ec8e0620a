package rank

import "time"

// use adds up what calls ask for and what they get.
//
// Concurrency: belongs to the rank's lock.
type use struct {
	arrived uint64        // see Use
	ended   uint64        //
	done    time.Duration // slot time of what has ended
	running int           // leases and ghosts
	starts  time.Duration // sum of the instants at which they began
	// The sum may be larger than the type. That does no harm, for only its
	// difference to the same number of later instants counts.
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

// Use is what calls have asked of the rank and what they have got, so that
// whoever sizes it can apply Little's law: between two looks the mean number of
// slots in use is the difference of SlotTime over the time, the mean run is that
// of SlotTime over that of Ended, and what calls ask for is that of Arrived times
// the mean run.
//
// Shape: Arrived, Ended and SlotTime only grow, the others are of the instant.
type Use struct {
	// Arrived counts the attempts that have asked for a slot: calls that the terms
	// of their account allow, also those that were refused then, retries, and
	// hedges that were sent. One that is put back (Rejoin) counts once.
	Arrived uint64
	// Ended counts those whose slot was given back after they had run.
	Ended uint64
	// SlotTime is for how long calls have had slots in all: from the grant to the
	// release, up to now for those that run, also where the worker has refused or
	// never seen them; and ghosts (R5) as long as they last.
	SlotTime time.Duration

	Slots   int           // of endpoints that get calls, as many as may be used
	Busy    int           // slots that a call or a ghost has, anywhere
	Ready   int           // ready endpoints
	Waiting int           // calls in the queue
	Oldest  time.Duration // for how long the one that came first has waited; 0: nobody waits
}

// Use takes a look. It costs O(accounts that wait) under the lock.
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

// oldest returns for how long the call has waited that has waited longest.
func (r *Rank) oldest(now time.Duration) (oldest time.Duration) {
	for q := range r.queues {
		oldest = max(oldest, q.oldest(now))
	}
	return oldest
}

func (q *queue) oldest(now time.Duration) (oldest time.Duration) {
	q.eachFlow(func(f *flow) {
		t := f.line.first
		oldest = max(oldest, t.waited+now-t.joined)
	})
	return oldest
}
