package relay

// Histogram counts durations in fixed buckets.
//
// Shape: Counts[i] holds the observations that are <= Bounds[i] and above the
// bound before it; the last element of Counts (one more than Bounds) holds the
// rest. Units: Bounds and Sum are seconds.
type Histogram struct {
	Bounds []float64
	Counts []uint64
	Sum    float64
}

// MethodStats is what is known of the finished calls of one method.
type MethodStats struct {
	Method  string            // "/package.Service/Method", or "other"
	Codes   map[string]uint64 // finished calls by gRPC code name ("OK", "UNAVAILABLE"), or by HTTP status ("404") for calls that are not gRPC
	Seconds Histogram         // from the call's HEADERS to its end
	Wait    Histogram         // time spent waiting for a slot
	Work    Histogram         // of calls that had a slot: from its grant to the worker's end
}

// Stats is a snapshot of the relay: counters since the process began, and what
// it holds now.
type Stats struct {
	Methods  []MethodStats
	Refusals map[string]uint64 // what cabrank or a worker refused, ended or moved, by reason token
	// Retries counts the attempts by the policies of methods, by what had failed,
	// and RetriesDenied those that were due and not made, by what spoke against
	// them. Every token is there, also those that never occurred.
	Retries, RetriesDenied map[string]uint64

	// Hedges counts second attempts beside first ones that were late: sent, and of
	// these won and lost; and those that were not sent, by what was missing.
	Hedges map[string]uint64

	// Doors counts the finished calls by the doors through which they came in, and by gRPC
	// code or, of those that are not gRPC, by HTTP status. Every door is there that has been
	// asked for a call.
	Doors map[string]map[string]uint64

	Disconnects Disconnects // connections that cabrank ended

	Connections int64 // of callers, now
	Buffered    int64 // bytes in buffers that count against Options.BufferTotal, now
	// MostConnections and MostBuffered are the bounds in force, which the memory of a
	// container can make less than those of the options.
	MostConnections, MostBuffered int64
}
