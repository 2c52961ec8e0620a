package methods

import "sync/atomic"

// mostAnswer is the most bytes of an answer, as gRPC's own clients have it.
const mostAnswer = 4 << 20

// budget is a counter with a bound.
type budget struct {
	most int64
	used atomic.Int64
}

// Take reports whether there was room.
func (b *budget) Take(n int) bool {
	if b.used.Add(int64(n)) <= b.most {
		return true
	}
	b.Give(n)
	return false
}

// Give returns what was taken.
func (b *budget) Give(n int) { b.used.Add(int64(-n)) }
