package rank

// Choice picks the endpoint for a call that can start. It is one of the three
// replaceable functions of the rank (R21).
//
// Shape: free holds at least one endpoint, each with a free slot, in no
// particular order; the choice returns one of them and does not change the slice.
// The endpoint that the call avoids is in it only if it is the only one.
// Concurrency: runs under the rank's lock, so it may read what Endpoint keeps
// there; it does not block and does not call the rank.
type Choice func(q *Request, free []*Endpoint) *Endpoint

// Fastest is the default choice: an endpoint that is not slow, or the fastest slow
// one; among equals the least loaded, as in LeastLoaded.
//
// Cost: O(endpoints with a free slot).
func Fastest(_ *Request, free []*Endpoint) *Endpoint {
	best := free[0]
	for _, e := range free[1:] {
		if faster(e, best) {
			best = e
		}
	}
	return best
}

// LeastLoaded is the choice that ignores the pace: the endpoint with the lowest
// fraction of its slots in use; among equals the one whose last call began longest
// ago, or that was added first.
//
// Cost: O(endpoints with a free slot).
func LeastLoaded(_ *Request, free []*Endpoint) *Endpoint {
	best := free[0]
	for _, e := range free[1:] {
		if lessLoaded(e, best) {
			best = e
		}
	}
	return best
}

// faster reports whether a call should rather go to a than to b.
func faster(a, b *Endpoint) bool {
	switch {
	case a.pace.slow != b.pace.slow:
		return !a.pace.slow
	case a.pace.slow && a.pace.mean != b.pace.mean:
		return a.pace.mean < b.pace.mean
	case (a.doubts > 0) != (b.doubts > 0):
		return a.doubts == 0
	}
	return lessLoaded(a, b)
}

// lessLoaded compares busy/limit of a and b without dividing.
func lessLoaded(a, b *Endpoint) bool {
	left, right := a.busy()*b.limit, b.busy()*a.limit
	if left != right {
		return left < right
	}
	if a.lastLease != b.lastLease {
		return a.lastLease < b.lastLease
	}
	return a.index < b.index // neither has had a call
}
