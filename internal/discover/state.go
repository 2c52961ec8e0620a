package discover

// State is what an endpoint elsewhere is doing. Its String is the value of the
// label state of cabrank_upstream_state.
type State uint8

const (
	// Starting is an endpoint that nothing is known of yet.
	Starting State = iota
	// Ready is one that gets calls.
	Ready
	// Suspect is one that is silent: it keeps its calls and gets no new ones until
	// it says anything (R6).
	Suspect
	// NotServing is one that says NOT_SERVING, has failed three questions in a row
	// or has not answered the first.
	NotServing
	// Unreachable is one to which no connection can be had.
	Unreachable
	// Standby is one that gets calls when those of a lower priority cannot be
	// reached.
	Standby
	// Drained is one that the operator has taken out.
	Drained
	// Draining is one that is named no more, and ends the calls that it has.
	Draining
)

func (s State) String() string {
	switch s {
	case Starting:
		return "starting"
	case Ready:
		return "ready"
	case Suspect:
		return "suspect"
	case NotServing:
		return "not serving"
	case Unreachable:
		return "unreachable"
	case Standby:
		return "standby"
	case Drained:
		return "drained"
	case Draining:
		return "draining"
	}
	return "unknown"
}

// States returns every State, in order, for whoever shows one row per state.
func States() []State {
	return []State{Starting, Ready, Suspect, NotServing, Unreachable, Standby, Drained, Draining}
}
