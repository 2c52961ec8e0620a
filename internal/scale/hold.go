package scale

import "time"

const (
	// holdLeast is how long the load must have fitted into fewer workers. It doubles, up
	// to holdMost, when more are wanted soon after fewer were.
	holdLeast = 5 * time.Minute
	holdMost  = 40 * time.Minute
	// bucket is the time for which one need is remembered.
	bucket  = 10 * time.Second
	buckets = int(holdMost/bucket) + 2
)

// hold keeps a number of workers until fewer have been enough for long enough.
//
// Units: needs are numbers of workers; each bucket has the largest need of its time.
type hold struct {
	needs   [buckets]int
	newest  int64         // number of the newest bucket, from the beginning of time
	noted   bool          // a need was noted
	first   time.Duration // when the first need was noted
	length  time.Duration
	lastUp  time.Duration
	lastCut time.Duration // when fewer were last wanted
	cut     bool
}

func (h *hold) reset() { *h = hold{length: holdLeast} }

// restart makes needs count from now: they have to be seen for long enough again.
func (h *hold) restart(now time.Duration) { h.first = now }

// note remembers how many workers are needed now.
func (h *hold) note(need int, now time.Duration) {
	number := int64(now / bucket)
	if !h.noted || number < h.newest {
		h.noted, h.first, h.newest = true, now, number-1
	}
	for ; h.newest < number; h.newest++ {
		if number-h.newest > int64(buckets) {
			h.newest = number - int64(buckets)
		}
		h.needs[(h.newest+1)%int64(buckets)] = 0
	}
	at := &h.needs[number%int64(buckets)]
	*at = max(*at, need)
}

// most returns the largest need within length.
func (h *hold) most(now time.Duration) int {
	most := 0
	for number := int64((now - h.length) / bucket); number <= h.newest; number++ {
		if number >= 0 && h.newest-number < int64(buckets) {
			most = max(most, h.needs[number%int64(buckets)])
		}
	}
	return most
}

// fewer reports whether one worker less than wanted would have been enough for
// long enough.
func (h *hold) fewer(wanted int, now time.Duration) bool {
	return now-max(h.first, h.lastUp) >= h.length && (!h.cut || now-h.lastCut >= downEvery) && h.most(now) < wanted
}

// lowered notes that fewer are wanted.
func (h *hold) lowered(now time.Duration) { h.cut, h.lastCut = true, now }

// raised notes that more are wanted. Soon after fewer were wanted, it doubles length;
// long after that, it resets length to holdLeast.
func (h *hold) raised(now time.Duration) {
	if h.cut {
		switch calm := now - h.lastCut; {
		case calm < 2*h.length:
			h.length = min(2*h.length, holdMost)
		case calm > 4*h.length:
			h.length = holdLeast
		}
	}
	h.lastUp = now
}
