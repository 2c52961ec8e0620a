package discover

// State is the state of an endpoint that cabrank does not run itself. Its String is the
// value of the label state of cabrank_upstream_state.
type State uint8

const (
	// Starting is an endpoint of which nothing is known yet.
	Starting State = iota
	// Ready is an endpoint that gets calls.
	Ready
	// Suspect is an endpoint that is silent: it keeps its calls and gets no new ones
	// until it answers (R6).
	Suspect
	// NotServing is an endpoint that says NOT_SERVING, has failed three questions in a
	// row or has not answered the first.
	NotServing
	// Unreachable is an endpoint without a connection.
	Unreachable
	// Standby is an endpoint that gets calls when those of a lower priority value
	// cannot be reached.
	Standby
	// Drained is an endpoint that the operator has taken out.
	Drained
	// Draining is an endpoint that no upstream names any more; it ends its calls.
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

// States returns every State, in order, for tables with one row per state.
func States() []State {
	return []State{Starting, Ready, Suspect, NotServing, Unreachable, Standby, Drained, Draining}
}
