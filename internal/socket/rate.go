package socket

import (
	"sync"
	"time"
)

// rate lets one through every each, and burst at once after a pause. The caller holds a
// lock.
type rate struct {
	each  time.Duration
	burst int
	next  time.Time // when the bucket is full, less burst times each
}

// wait takes one and returns how long it has to wait.
func (r *rate) wait(now time.Time) time.Duration {
	if earliest := now.Add(-r.each * time.Duration(r.burst)); r.next.Before(earliest) {
		r.next = earliest
	}
	r.next = r.next.Add(r.each)
	return max(0, r.next.Sub(now))
}

// rateOfAll lets perSecond through in a second, for all sources together. After a pause a
// single source gets half of it at once: a source that has had much recently gets no more
// than it leaves.
//
// Concurrency: allows may be called from anywhere.
type rateOfAll struct {
	perSecond float64

	mu   sync.Mutex
	left float64
	at   time.Time
}

// debt is what a source has had recently, faded to nothing within a second. Guarded by the
// rate's lock.
type debt struct {
	had float64
	at  time.Time
}

func newRateOfAll(perSecond float64) *rateOfAll {
	return &rateOfAll{perSecond: perSecond, left: perSecond}
}

// allows reports whether n may pass now, for a source with a debt; nil without a source.
func (r *rateOfAll) allows(now time.Time, d *debt, n float64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.at.IsZero() {
		r.left = min(r.perSecond, r.left+max(0, now.Sub(r.at).Seconds())*r.perSecond)
	}
	r.at = now
	if r.left < n {
		return false
	}
	if d != nil {
		if d.had -= d.had * min(1, max(0, now.Sub(d.at).Seconds())); d.had+n > r.left {
			d.at = now
			return false
		}
		d.had, d.at = d.had+n, now
	}
	r.left -= n
	return true
}

// pace slows down a client that sends more than it may: its messages, pings and pongs wait
// in the buffers of the connection. It reports false at the end of the socket.
func (s *session) pace() bool {
	if s.rate == nil {
		return true
	}
	wait := s.rate.wait(time.Now())
	if wait == 0 {
		return true
	}
	s.server.stats.slowed.Add(1)
	return s.pause(wait)
}

// pause reads nothing for a while. It reports false at the end of the socket.
func (s *session) pause(wait time.Duration) bool {
	s.turns.rest()
	s.notReading.Store(true)
	defer s.notReading.Store(false)
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		s.turns.work()
		return true
	case <-s.out.drained():
		return false
	}
}
