package methods

import "sync/atomic"

const (
	// mostAnswer is the most bytes of an answer, as gRPC's own clients have it.
	mostAnswer = 4 << 20
	// mostAnswers is the most bytes of all answers that come at a time, beyond
	// freeAnswer of each.
	mostAnswers = 64 << 20
	freeAnswer  = 32 << 10
)

// budget counts bytes that are held.
type budget struct {
	most int64
	used atomic.Int64
}

// take reports whether there was room.
func (b *budget) take(n int) bool {
	if b.used.Add(int64(n)) <= b.most {
		return true
	}
	b.used.Add(int64(-n))
	return false
}

func (b *budget) give(n int) { b.used.Add(int64(-n)) }
