package socket

import "time"

// rate lets so many through in a second, and as many at once after a pause. The caller
// has a lock.
type rate struct {
	each  time.Duration // one in this time
	burst int
	next  time.Time // when the bucket is full, less burst times each
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
