package whatif

import (
	"fmt"
	"slices"
	"time"

	"github.com/cabrank/cabrank/lab/internal/latency"
)

// Calibration is what a service takes for a call while all of a worker's slots are
// busy and nobody waits.
type Calibration struct {
	// Slots is how many calls each worker had at a time; 0 if that is not known, and
	// the times are taken for any number.
	Slots int `json:"slots"`
	// Workers is how many there were: Slots times Workers callers.
	Workers int `json:"workers,omitempty"`
	// Source says in a line where the times are from.
	Source string `json:"source"`
	// Times are how long calls took, as their callers saw it or as the worker told.
	Times *latency.Histogram `json:"times"`
	// Echo is what of each of them is not the service: the median of a call that does
	// nothing; 0 if the worker told the times. It is added to every latency.
	Echo time.Duration `json:"echo_ns"`
	// Told says that Times are the worker's own, without Echo in them.
	Told bool `json:"told,omitempty"`
	// CPU is what the workers compute for a call; 0 if that was not measured.
	CPU time.Duration `json:"cpu_ns,omitempty"`
	// Failed is how many calls had no time because they failed.
	Failed int64 `json:"failed,omitempty"`
}

// mostStray is the share of the calls that count as strays at most: more of them are how
// the service is.
const mostStray = 0.01

// Service returns the times of the service alone; nil if there are none. One pause of a
// program meets a call in each slot. So many of the longest calls of a measurement say
// nothing of how often calls are long.
func (c Calibration) Service() *Times {
	stray := min(int64(c.Slots*max(c.Workers, 1)), int64(mostStray*float64(c.Times.Count())))
	if c.Told {
		return TimesOf(c.Times, 0, stray)
	}
	return TimesOf(c.Times, c.Echo, stray)
}

// ForSlots finds the calibration for a number of slots.
//
// Errors: one line, if there is none.
func ForSlots(all []Calibration, slots int) (Calibration, error) {
	for _, want := range []int{slots, 0} {
		if i := slices.IndexFunc(all, func(c Calibration) bool { return c.Slots == want }); i >= 0 {
			return all[i], nil
		}
	}
	var have []int
	for _, c := range all {
		have = append(have, c.Slots)
	}
	return Calibration{}, fmt.Errorf("there are no service times of workers with %d slots, only with %s: with more calls at a time each takes longer", slots, list(have))
}

// SlotsOf are the numbers of slots that calibrations are for, or usual if they are for
// any.
func SlotsOf(all []Calibration, usual []int) (slots []int) {
	for _, c := range all {
		if c.Slots == 0 {
			return usual
		}
		slots = append(slots, c.Slots)
	}
	return slots
}
