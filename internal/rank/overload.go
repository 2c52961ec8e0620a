package rank

// Overloaded returns for how many callers the newest call goes first now: more of
// their calls come than can be served in time. It takes no lock. Each time that
// changes Wake asks for a Tick.
func (r *Rank) Overloaded() int { return int(r.overloaded.Load()) }

// reordered notes that the order of a line may have changed.
func (r *Rank) reordered(before, now bool) {
	switch {
	case before == now:
		return
	case now:
		r.overloaded.Add(1)
		r.counts.decided[turnedNewest]++
	default:
		r.overloaded.Add(-1)
		r.counts.decided[turnedBack]++
	}
	r.poke()
}
