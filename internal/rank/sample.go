package rank

import (
	"math"
	"time"
)

// When a window of calls is long enough.
const (
	// fewestCalls is below how many calls nothing is concluded, and after how
	// many more it is looked again whether they are enough.
	fewestCalls = 32
	// mostCalls is how many calls are enough however much they differ.
	mostCalls = 512
	// shortestWindow keeps one pause of a worker's garbage collection from
	// being all that a window sees. Two mean run times are the least as well:
	// calls that ran side by side tell the same.
	shortestWindow = 100 * time.Millisecond
	// certain is the wished-for standard error of a window's mean, relative.
	certain = 0.06
	// certainProbe is the same for a probe, which costs throughput. The next one
	// makes up for it.
	certainProbe = 0.1
	// clipAt is the multiple of the calm run time beyond which the length of a
	// call makes no difference. Without the far tail a mean is as certain after
	// a fifth of the calls, if one in twenty takes twenty times as long.
	clipAt = 4
	// busyShare is the inverse of the share of calls that must have seen the
	// limit reached for it to be in use.
	busyShare = 2
)

// sample sums up calls that ended one after another. The zero value is empty.
//
// Units: sums of times are in nanoseconds.
type sample struct {
	calls    int
	busy     int // of them, those that saw the limit reached
	inFlight int // sum
	began    time.Duration
	runs     float64 // sum of run times, clipped
	expected float64 // sum of what these calls take on average
	squares  float64 // sum of squared differences to what is calm
}

// add counts one call. calm is the ratio of run and expected without calls that
// wait, 0 if it is not known.
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

// enough reports whether the window tells enough, with a standard error as wished
// for or as good as it gets.
func (s *sample) enough(wish float64, now time.Duration) bool {
	age, run := now-s.began, s.meanRun()
	if s.calls < fewestCalls || age < shortestWindow || age < 2*run {
		return false
	}
	return s.calls >= mostCalls ||
		age >= time.Second+2*run ||
		math.Sqrt(s.squares) <= wish*s.runs
}

// measure is what a window has shown.
type measure struct {
	at       time.Duration // its end
	took     time.Duration
	meanRun  time.Duration
	inFlight float64 // mean
	ratio    float64 // run times, relative to what the calls take on average
	err      float64 // standard error of ratio
	busy     bool    // the limit was in use
}

// measure returns what the window has shown; it is not empty.
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

// waiting returns how many of the calls in flight waited for others inside the
// worker, if calm is the ratio of calls that do not. By Little's law the calls
// in flight that do not wait are as many as the rate times the calm run time.
func (m measure) waiting(calm float64) float64 {
	return max(m.inFlight*(1-calm/m.ratio), 0)
}

// surelyAbove reports whether the ratio is higher than another by more than
// chance explains.
func (m measure) surelyAbove(ratio, err float64) bool {
	return m.ratio-ratio > 2*math.Hypot(m.err, err)
}
