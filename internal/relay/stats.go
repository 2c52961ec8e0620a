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

// MethodStats counts the finished calls of one method.
type MethodStats struct {
	Method     string            // "/package.Service/Method", or "other"
	Codes      map[string]uint64 // finished calls by gRPC code name ("OK", "UNAVAILABLE"), or by HTTP status ("404") for calls that are not gRPC
	Seconds    Histogram         // from the call's HEADERS to its end
	Wait       Histogram         // time spent waiting for a slot
	Work       Histogram         // time with a slot, of calls that had one
	NoDeadline uint64            // those without a deadline, of their caller or of a rule
}

// Stats is a snapshot of the relay: counters since the process began, and current use.
type Stats struct {
	Methods  []MethodStats
	Refusals map[string]uint64 // calls that Cabrank or a worker refused, ended or moved, by reason
	// Retries counts retries by reason, and RetriesDenied those that were due but not made,
	// by reason. All reasons are there, also those that never occurred.
	Retries, RetriesDenied map[string]uint64

	// Hedges counts hedges by result: sent, of these won and lost, and those that were not
	// sent by reason.
	Hedges map[string]uint64

	// Doors counts finished calls by door, and by gRPC code, or by HTTP status if they are
	// not gRPC. It has every door that has been asked for a call.
	Doors map[string]map[string]uint64

	Disconnects Disconnects // connections that Cabrank ended

	Connections int64  // of callers, now
	Accepted    uint64 // connections of callers
	Buffered    int64  // bytes in buffers that count against Options.BufferTotal, now
	// MostConnections and MostBuffered are the bounds in force, which the memory of a
	// container can make less than those of the options.
	MostConnections, MostBuffered int64
}
