package result

import (
	"math"
	"slices"
	"strings"
	"time"
)

// Block is one run of one arm at one load.
type Block struct {
	Arm  string `json:"arm"`
	Load string `json:"load"`
	// Round is the pair that it belongs to, from 1 on, and Order its place among
	// the arms of that round, from 1 on.
	Round int `json:"round"`
	Order int `json:"order"`
	// Seed is that of arrivals and service times: blocks of one round and one load
	// have the same.
	Seed  uint64        `json:"seed"`
	Began time.Time     `json:"began"`
	Took  time.Duration `json:"took_ns"` // of the whole block, starting and stopping included
	// Raw is the file of the record, relative to run.json.
	Raw string `json:"raw,omitempty"`
	// Figures has those that are known, by name; see Known for the names.
	Figures map[string]float64 `json:"figures"`
	// Beyond are figures that are above every number: nobody recovered.
	Beyond []string `json:"beyond,omitempty"`
	// Silent says that no call was answered: latencies and costs of a call are then
	// above every number.
	Silent bool `json:"silent,omitempty"`
	// Errors counts calls without an answer by the name of the status, such as
	// "Unavailable", and as "unsent" and "open".
	Errors map[string]int64 `json:"errors,omitempty"`
	// Workers counts answers by worker, well or not.
	Workers   map[string]int64 `json:"workers,omitempty"`
	Processes []Process        `json:"processes,omitempty"`
	// Noise is how many cores others than these processes used, on average.
	Noise float64 `json:"noise"`
	// Marks says why the block is not judged. It is kept.
	Marks []string `json:"marks,omitempty"`
	// Late has the figures of which more than a tenth may be send lag, as they would be without
	// it. A verdict has to hold for them, too.
	Late   map[string]float64 `json:"late,omitempty"`
	Events []Event            `json:"events,omitempty"`
}

// Process is what one process, with its children, has used while the load ran, its
// warm-up included.
type Process struct {
	// Role is "generator 1", "worker 2", "front", "gateway" or "controller".
	Role string `json:"role"`
	PID  int    `json:"pid"`
	// CPU is user and system time.
	CPU time.Duration `json:"cpu_ns"`
	// RSS is what it held at the end, PeakRSS the most, in bytes; 0 if not known.
	RSS     int64 `json:"rss_bytes"`
	PeakRSS int64 `json:"peak_rss_bytes,omitempty"`
	// Grown is how much more it held at the end than when the load began, in bytes; less
	// than 0 if it gave memory back.
	Grown int64 `json:"grown_bytes,omitempty"`
	// Quota is how many cores it may use; 0 for all. Throttled is how often its
	// quota held it up, ThrottledFor for how long.
	Quota        float64       `json:"quota_cores,omitempty"`
	Throttled    int64         `json:"throttled,omitempty"`
	ThrottledFor time.Duration `json:"throttled_ns,omitempty"`
}

// Kind is the role without its number: "worker" of "worker 2".
func (p Process) Kind() string {
	kind, _, _ := strings.Cut(p.Role, " ")
	return kind
}

// held is the memory to tell: the most, if it is known.
func (p Process) held() int64 {
	if p.PeakRSS > 0 {
		return p.PeakRSS
	}
	return p.RSS
}

// Event is something that was done to an arm while the load ran.
type Event struct {
	// Did says what: "worker 2 stopped for 1.5 s".
	Did string `json:"did"`
	// At is when it began, since the counted part did, and Took how long it went on.
	At   time.Duration `json:"at_ns"`
	Took time.Duration `json:"took_ns,omitempty"`
	Err  string        `json:"error,omitempty"`
}

// Judged reports whether the block counts for verdicts.
func (b *Block) Judged() bool { return len(b.Marks) == 0 }

// IsLate reports whether more than a tenth of a figure may be send lag.
func (b *Block) IsLate(figure string) bool {
	_, late := b.Late[figure]
	return late
}

// WithoutLag is a figure without the send lag that may be in it, where that is more than a
// tenth; NaN if it may be all of it.
func (b *Block) WithoutLag(name string) float64 {
	switch v, late := b.Late[name]; {
	case !late:
		return b.Figure(name)
	case v <= 0:
		return math.NaN()
	default:
		return v
	}
}

// Figure returns a figure as package stats takes it: infinity if it is above every
// number, NaN if it is not known. It does not look at marks.
func (b *Block) Figure(name string) float64 {
	if v, known := b.Figures[name]; known {
		return v
	}
	if slices.Contains(b.Beyond, name) || b.Silent && endless(name) {
		return math.Inf(1)
	}
	return math.NaN()
}

// endless reports whether a figure is above every number if no call is answered. Those of
// which Beyond tells need more than that: an event, or a number of calls.
func endless(name string) bool {
	f, known := Known(name)
	return known && (f.Unit == Seconds || f.Unit == CPUSeconds) && name != "total" && name != "recovery" && name != "rebalance"
}
