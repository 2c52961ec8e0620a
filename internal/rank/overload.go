package rank

// Overloaded returns the number of callers whose newest call goes first now, because
// more of their calls come than can be served in time. It takes no lock. Each time the
// number changes Wake asks for a Tick.
func (r *Rank) Overloaded() int { return int(r.overloaded.Load()) }

// reordered notes that the order of a list may have changed.
func (r *Rank) reordered(before, now bool) {
	switch {
	case before == now:
		return
	case now:
		r.overloaded.Add(1)
		r.counts.decided[flippedNewest]++
	default:
		r.overloaded.Add(-1)
		r.counts.decided[flippedBack]++
	}
	r.poke()
}
