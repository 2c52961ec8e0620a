package socket

import "time"

// rate lets so many through in a second, and as many at once after a pause. The caller
// has a lock.
type rate struct {
	each  time.Duration // one in this time
	burst int
	next  time.Time // when the bucket is full, less burst times each
}

// wait takes one and returns after how long it has its turn.
func (r *rate) wait(now time.Time) time.Duration {
	if earliest := now.Add(-r.each * time.Duration(r.burst)); r.next.Before(earliest) {
		r.next = earliest
	}
	r.next = r.next.Add(r.each)
	return max(0, r.next.Sub(now))
}

// allows reports whether one may pass now.
func (r *rate) allows(now time.Time) bool {
	if earliest := now.Add(-r.each * time.Duration(r.burst)); r.next.Before(earliest) {
		r.next = earliest
	}
	if r.next.After(now.Add(-r.each)) {
		return false
	}
	r.next = r.next.Add(r.each)
	return true
}

// pace holds back a client that sends more than it may: its messages, and pings, wait
// for their turn in the buffers of the connection. It reports false at the end of the
// socket.
func (s *session) pace() bool {
	if s.rate == nil {
		return true
	}
	wait := s.rate.wait(time.Now())
	if wait == 0 {
		return true
	}
	s.server.stats.slowed.Add(1)
	s.held.Store(true)
	defer s.held.Store(false)
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.out.drained():
		return false
	}
}
