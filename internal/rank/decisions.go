package rank

// decision is one kind of decision, counted under its own name.
type decision uint8

const (
	startedAtOnce decision = iota
	queued
	handedOver
	servedNewest
	flippedNewest
	flippedBack
	evicted
	letThrough
	waitedForStreams
	waitedForReserve
	waitedForFaster
	waitedForOthers
	preferredFaster
	probedSlow
	heldGhost
	pausedRefusing
	startedFree
	raisedLimit
	loweredLimit
	probedLimit
	decisions // how many there are
)

func (d decision) String() string {
	return [...]string{
		startedAtOnce:    "started_at_once",
		queued:           "queued",
		handedOver:       "handed_over",
		servedNewest:     "served_newest_first",
		flippedNewest:    "turned_newest_first",
		flippedBack:      "turned_first_come",
		evicted:          "evicted_for_another",
		letThrough:       "spared_to_learn",
		waitedForStreams: "waited_for_stream_slots",
		waitedForReserve: "waited_for_reserved_slots",
		waitedForFaster:  "waited_for_faster",
		waitedForOthers:  "waited_for_others",
		preferredFaster:  "preferred_faster",
		probedSlow:       "probed_slow",
		heldGhost:        "held_ghost",
		pausedRefusing:   "paused_refusing",
		startedFree:      "started_into_free_slot",
		raisedLimit:      "raised_slots_auto",
		loweredLimit:     "lowered_slots_auto",
		probedLimit:      "probed_slots_auto",
	}[d]
}

// counters are what was decided since the rank was made.
type counters struct {
	decided [decisions]uint64
	refused [reasons]uint64
}

// Decisions counts the decisions since the rank was made, by name: refusals by their
// Reason, and everything else that the rank decides.
func (r *Rank) Decisions() map[string]uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	named := make(map[string]uint64, int(decisions)+int(reasons))
	for d, n := range r.counts.decided {
		named[decision(d).String()] = n
	}
	for reason, n := range r.counts.refused {
		if Reason(reason) != NoReason {
			named["refused_"+Reason(reason).String()] = n
		}
	}
	return named
}
