package relay

import (
	"time"

	"github.com/cabrank/cabrank/internal/rank"
)

// Load is what calls ask for and what they get. Counters run since the relay was
// made; Use tells how to read them.
type Load struct {
	rank.Use

	At time.Time // when it was so
	// Shed counts the calls that were refused for want of slots, or have left the
	// queue because they waited too long: they would have been served by more
	// workers. Those beyond what their caller may have are not in it.
	Shed uint64
}

// Load takes a look. It costs the lock of each shard.
func (r *Relay) Load() Load {
	l := Load{At: time.Now(), Use: r.rank.Use(r.now())}
	r.each(func(st *stand) {
		for why, n := range st.stats.refused {
			if ending(why).wantsSlots() {
				l.Shed += n
			}
		}
	})
	return l
}

// wantsSlots reports whether calls end so because there are too few slots.
func (e ending) wantsSlots() bool {
	switch e {
	case endedQueueFull, endedNoSlot, endedNoWorker, endedDeadlineQueued, endedBuffer, endedWontFinish:
		return true
	default:
		return false
	}
}
