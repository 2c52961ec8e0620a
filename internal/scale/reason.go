package scale

// Reason is the reason for the number of wanted workers. Its String is the value of the
// reason label of cabrank_scale_decisions_total.
type Reason uint8

const (
	// Enough means that the number is right.
	Enough Reason = iota
	// Load means that the level of the load needs more.
	Load
	// Rise means that arrivals have risen suddenly.
	Rise
	// Trend means that arrivals rise, and would need more when a worker is ready.
	Trend
	// Backlog means that calls would wait longer than a worker takes to start.
	Backlog
	// Shed means that calls were refused because they would have been late.
	Shed
	// LessLoad means that the load has fitted into fewer for long enough.
	LessLoad
	// Minimum means that fewer were wanted than the minimum.
	Minimum
	// Maximum means that more are needed than the maximum.
	Maximum
	// CPU means that more are needed, but would have no CPU.
	CPU
	// Memory means that more are needed, but would have no memory.
	Memory
	// NotReady means that more are needed, but the wanted ones do not come up.
	NotReady
	// Often means that the number has changed too often in this minute.
	Often
	reasons // how many there are
)

// String returns the reason as the value of a label.
func (r Reason) String() string {
	if r >= reasons {
		return "unknown"
	}
	return [...]string{
		Enough:   "enough",
		Load:     "load",
		Rise:     "rise",
		Trend:    "trend",
		Backlog:  "backlog",
		Shed:     "shed",
		LessLoad: "less_load",
		Minimum:  "minimum",
		Maximum:  "maximum",
		CPU:      "cpu",
		Memory:   "memory",
		NotReady: "not_ready",
		Often:    "too_often",
	}[r]
}

// Reasons returns every Reason, in order.
func Reasons() []Reason {
	all := make([]Reason, reasons)
	for i := range all {
		all[i] = Reason(i)
	}
	return all
}

// allows completes "as far as": it says what bounds the number.
func (r Reason) allows() string {
	switch r {
	case CPU:
		return "there is CPU for them"
	case Memory:
		return "memory allows"
	case NotReady:
		return "those that are wanted come up"
	default:
		return "the maximum allows"
	}
}
