package redis

import (
	"sync/atomic"
	"time"
)

// counts are the numbers of failed orders, of all outlets.
type counts struct{ lost, unknown atomic.Uint64 }

// Stats is the state of a broker's connections to Redis.
type Stats struct {
	// Away is since when Redis cannot be reached, as far as that was noticed: events do
	// not come, or no master answers. Zero: it can be reached.
	Away time.Time
	// Ended counts connections that have ended and were made again.
	Ended uint64
	// Lost counts orders that were not done, Unknown orders that may have been done.
	Lost, Unknown uint64
}

// Stats may be called from anywhere.
func (b *Broker) Stats() Stats {
	s := Stats{Lost: b.counts.lost.Load(), Unknown: b.counts.unknown.Load()}
	away := b.feed.away.Load()
	for _, m := range b.all() {
		s.Ended += m.client.Ended()
		if since := m.away(); since != 0 && (away == 0 || since < away) {
			away = since
		}
	}
	if away != 0 {
		s.Away = time.Unix(0, away)
	}
	return s
}

// away is since when no master answers, in ns since 1970; 0 if one answers.
func (m *masters) away() (since int64) {
	for _, out := range m.outlets {
		one := out.away.Load()
		if one == 0 {
			return 0
		}
		since = max(since, one)
	}
	return since
}
