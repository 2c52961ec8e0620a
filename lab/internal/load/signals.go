package load

import (
	"math"
	"sync/atomic"
	"time"
)

// signals is what the run tells its clients, and what they tell it. Times are since the
// epoch.
type signals struct {
	epoch       time.Time
	from, until atomic.Int64 // latencies of calls that begin within are kept
	stop        atomic.Bool  // start no more calls
	kept        kept
}

// newSignals counts nothing yet.
func newSignals() *signals {
	s := &signals{epoch: time.Now()}
	s.from.Store(math.MaxInt64)
	s.until.Store(math.MaxInt64)
	return s
}

func (s *signals) now() time.Duration { return time.Since(s.epoch) }

// counts says whether the latency of a call that begins at t is kept.
func (s *signals) counts(t time.Duration) bool {
	return int64(t) >= s.from.Load() && int64(t) < s.until.Load()
}
