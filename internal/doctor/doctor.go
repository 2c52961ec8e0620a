// Package doctor finds what is wrong with a running cabrank from what its control socket
// tells within some seconds.
//
// Start from Examine. It knows no process and no clock: Looks go in, taken now or read from
// a file, and Findings come out, the worst first.
package doctor

import (
	"errors"
	"math"
	"time"

	"github.com/cabrank/cabrank/internal/admin"
)

// Look is what a cabrank tells of itself at one moment. As JSON it is a line of the file of
// `cabrank doctor --save`.
type Look struct {
	Status *admin.Status `json:"status,omitempty"` // of the first and the last look
	Live   admin.Live    `json:"live"`
}

// Level is how bad a finding is.
type Level string

const (
	// Error is what costs calls now, or soon will.
	Error Level = "error"
	// Warning is what makes calls late, or may cost some.
	Warning Level = "warning"
	// Notice is what could be better.
	Notice Level = "notice"
)

// Finding is one thing that is wrong.
type Finding struct {
	Name    string             `json:"name"` // "crash_loop"; docs/control.md lists them
	Level   Level              `json:"level"`
	Says    string             `json:"says"`            // in one sentence, with the figures
	Do      string             `json:"do"`              // one command or key
	Lines   []string           `json:"lines,omitempty"` // that a worker has written
	Figures map[string]float64 `json:"figures"`
}

// leastLooks are needed to tell anything.
const leastLooks = 2

// errFew says that there is nothing to compare.
var errFew = errors.New("too few looks: two are needed, of one process")

// checks look for one kind of fault each. Causes come before what they cause, and what costs
// calls before what could be better: this is the order of the findings.
func checks() []func(*record) *Finding {
	return []func(*record) *Finding{
		crashLoop, noWorker, sickWorker, certificate, files, memory,
		tooManySlots, slowWorker, tooFew, shortDeadlines,
		pages, connectionPerCall, noDeadlines, noHealth,
	}
}

// Examine returns what is wrong, the worst first. Only the looks at the last process count.
func Examine(looks []Look) ([]Finding, error) {
	r, err := newRecord(looks)
	if err != nil {
		return nil, err
	}
	found := []Finding{}
	for _, check := range checks() {
		if f := check(r); f != nil {
			found = append(found, *f)
		}
	}
	return found, nil
}

// record is what the looks show together.
type record struct {
	looks       []admin.Live
	first, last admin.Live
	then, now   admin.Status // at the first and the last look
	seconds     float64      // from the first to the last look
	calls       float64      // that have ended in between
}

func newRecord(looks []Look) (*record, error) {
	from := 0
	for i := range looks {
		if looks[i].Live.PID != looks[from].Live.PID {
			from = i
		}
	}
	looks = looks[from:]
	if len(looks) < leastLooks {
		return nil, errFew
	}
	r := &record{first: looks[0].Live, last: looks[len(looks)-1].Live}
	r.seconds = r.last.Time.Sub(r.first.Time).Seconds()
	if r.seconds <= 0 {
		return nil, errFew
	}
	for _, l := range looks {
		r.looks = append(r.looks, l.Live)
		if l.Status != nil {
			if r.then.PID == 0 {
				r.then = *l.Status
			}
			r.now = *l.Status
		}
	}
	r.calls = r.grown(func(l admin.Live) uint64 {
		n := uint64(0)
		for _, calls := range l.Codes {
			n += calls
		}
		return n
	})
	return r, nil
}

// grown is by how much a counter has grown.
func (r *record) grown(of func(admin.Live) uint64) float64 {
	return math.Max(float64(of(r.last))-float64(of(r.first)), 0)
}

// refused counts the calls that were refused for some reasons.
func (r *record) refused(reasons ...string) float64 {
	return r.grown(func(l admin.Live) (n uint64) {
		for _, reason := range reasons {
			n += l.Refusals[reason]
		}
		return n
	})
}

// share is the part of the calls that n are.
func (r *record) share(n float64) float64 { return n / math.Max(r.calls, 1) }

// p99 is the 99th percentile of what a histogram has counted in between, evenly within its
// bucket; 0 if that was nothing.
func (r *record) p99(of func(admin.Live) admin.LiveTimes) time.Duration {
	counts, bounds := r.between(of), of(r.last).Bounds
	left, low := .99*sum(counts), 0.0
	for i, bound := range bounds {
		if n := counts[i]; n > 0 && left <= n {
			return time.Duration((low + (bound-low)*left/n) * float64(time.Second))
		}
		left, low = left-counts[i], bound
	}
	return time.Duration(low * float64(time.Second)) // or longer
}

func sum(of []float64) (all float64) {
	for _, n := range of {
		all += n
	}
	return all
}

// between is what a histogram has counted in between.
func (r *record) between(of func(admin.Live) admin.LiveTimes) []float64 {
	then, now := of(r.first).Counts, of(r.last).Counts
	counts := make([]float64, len(now))
	for i, n := range now {
		counts[i] = float64(n)
		if i < len(then) {
			counts[i] = math.Max(counts[i]-float64(then[i]), 0)
		}
	}
	return counts
}
