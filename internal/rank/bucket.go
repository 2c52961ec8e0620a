package rank

import "time"

// bucket bounds a rate: a token bucket, kept as the instant at which it will be
// full (the generic cell rate algorithm), so that it needs no refilling. The
// zero value lets everything through.
type bucket struct {
	every time.Duration // time that one token takes to come; 0: no limit
	depth time.Duration // time in which an empty bucket becomes full
	full  time.Duration
}

func newBucket(t Terms) bucket {
	if t.Rate <= 0 {
		return bucket{}
	}
	every := max(time.Duration(float64(time.Second)/t.Rate), 1)
	return bucket{every: every, depth: every * time.Duration(max(t.Burst, 1))}
}

// take takes a token. It reports false if the bucket is empty.
func (b *bucket) take(now time.Duration) bool {
	if b.every == 0 {
		return true
	}
	full := max(b.full, now) + b.every
	if full > now+b.depth {
		return false
	}
	b.full = full
	return true
}

// wait returns the time until the next token.
func (b *bucket) wait(now time.Duration) time.Duration {
	if b.every == 0 {
		return 0
	}
	return max(max(b.full, now)+b.every-now-b.depth, 0)
}
