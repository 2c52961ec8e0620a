package rank

import (
	"math"
	"time"
)

// When a window of calls is long enough.
const (
	// fewestCalls is how many calls a window needs at least; after as many more each
	// time it is checked again.
	fewestCalls = 32
	// mostCalls is how many calls are enough however much they differ.
	mostCalls = 512
	// shortestWindow keeps a window from seeing nothing but one pause of a worker's
	// garbage collection. A window also lasts two mean run times at least: calls that
	// ran side by side tell the same.
	shortestWindow = 100 * time.Millisecond
	// certain is the relative standard error that a window's mean should have.
	certain = 0.06
	// certainProbe is the same for a probe, which costs throughput: it is less certain,
	// and the next probe makes up for that.
	certainProbe = 0.1
	// clipAt is the multiple of the calm run time at which longer run times are cut off.
	// Without the far tail a mean is as certain after a fifth of the calls, if one in
	// twenty takes twenty times as long.
	clipAt = 4
	// busyShare says when the limit is in use: when 1/busyShare of the calls have seen
	// it reached.
	busyShare = 2
)

// sample is a sum over calls that ended one after another. The zero value is empty.
//
// Units: sums of times are in nanoseconds.
type sample struct {
	calls    int
	busy     int // calls that saw the limit reached
	inFlight int // sum
	began    time.Duration
	runs     float64 // sum of run times, clipped
	expected float64 // sum of the mean run times of the calls' methods
	squares  float64 // sum of squared differences to the calm run time
}

// add counts one call. calm is the ratio of run and expected while no call waits, 0
// if that is not known.
func (s *sample) add(run, expected time.Duration, calm float64, inFlight int, busy bool, now time.Duration) {
	if s.calls == 0 {
		s.began = now
	}
	if calm == 0 {
		calm = 1
	}
	usual := calm * float64(expected)
	clipped := min(float64(max(run, 1)), clipAt*usual)
	s.calls++
	s.inFlight += inFlight
	s.runs += clipped
	s.expected += float64(expected)
	s.squares += (clipped - usual) * (clipped - usual)
	if busy {
		s.busy++
	}
}

// meanRun returns the mean run time of the window's calls, clipped.
func (s *sample) meanRun() time.Duration {
	return time.Duration(s.runs / float64(max(s.calls, 1)))
}

// enough reports whether the window tells enough: its standard error is at most wish,
// or as good as it gets.
func (s *sample) enough(wish float64, now time.Duration) bool {
	age, run := now-s.began, s.meanRun()
	if s.calls < fewestCalls || age < shortestWindow || age < 2*run {
		return false
	}
	return s.calls >= mostCalls ||
		age >= time.Second+2*run ||
		math.Sqrt(s.squares) <= wish*s.runs
}

// measure is the result of a window.
type measure struct {
	at       time.Duration // its end
	took     time.Duration
	meanRun  time.Duration
	inFlight float64 // mean
	ratio    float64 // run times, relative to the mean of the calls' methods
	err      float64 // standard error of ratio
	busy     bool    // the limit was in use
}

// measure returns the result of the window, which is not empty.
func (s *sample) measure(now time.Duration) measure {
	return measure{
		at:       now,
		took:     now - s.began,
		meanRun:  s.meanRun(),
		inFlight: float64(s.inFlight) / float64(s.calls),
		ratio:    s.runs / s.expected,
		err:      math.Sqrt(s.squares) / s.expected,
		busy:     s.busy*busyShare >= s.calls,
	}
}

// waiting returns how many of the calls in flight waited for others inside the worker,
// if calm is the ratio of calls that do not wait. By Little's law the number of calls
// that do not wait is the rate times the calm run time.
func (m measure) waiting(calm float64) float64 {
	return max(m.inFlight*(1-calm/m.ratio), 0)
}

// surelyAbove reports whether the ratio is higher than ratio by more than chance
// explains.
func (m measure) surelyAbove(ratio, err float64) bool {
	return m.ratio-ratio > 2*math.Hypot(m.err, err)
}
