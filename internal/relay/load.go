package relay

import (
	"time"

	"github.com/cabrank/cabrank/internal/rank"
)

// Load is the demand of calls and the use of slots. Counters run since the relay was made;
// rank.Use says how to read them.
type Load struct {
	rank.Use

	At time.Time // time of the snapshot
	// Shed counts the calls that were refused for lack of slots, or left the queue because
	// they waited too long: more workers would have served them. Calls above the limits of
	// their caller are not counted.
	Shed uint64
}

// Load returns the current load. It takes the lock of each shard.
func (r *Relay) Load() Load {
	l := Load{At: time.Now(), Use: r.rank.Use(r.now())}
	r.each(func(st *shardState) {
		for why, n := range st.tally.refused {
			if ending(why).wantsSlots() {
				l.Shed += n
			}
		}
	})
	return l
}

// wantsSlots reports whether calls end for this reason because slots are too few.
func (e ending) wantsSlots() bool {
	switch e {
	case endedQueueFull, endedNoSlot, endedNoWorker, endedDeadlineQueued, endedBuffer, endedWontFinish:
		return true
	default:
		return false
	}
}
