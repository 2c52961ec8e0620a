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
		for _, why := range [...]ending{endedQueueFull, endedNoSlot, endedNoWorker, endedDeadlineQueued, endedBuffer, endedWontFinish} {
			l.Shed += st.tally.refused[why]
		}
	})
	return l
}
