package ranksim

import (
	"math/rand/v2"
	"time"
)

// Loop is callers in a closed loop: each waits for the end of its call before it
// makes the next one, whatever that end was. The number of calls depends on the system,
// so they cannot be drawn in advance; run times and pauses are drawn from the caller's
// own sequence.
type Loop struct {
	// Callers is how many there are, each with one call at a time.
	Callers int
	// Each caller makes its first call at From, or up to Think later; after Until it
	// makes no more.
	From, Until time.Duration
	// Think is the time between the end of a call and the next one; nil means no time.
	// It comes on top of the trip between caller and rank.
	Think Service
	// AtOnce means that a caller whose call has failed does not think first.
	AtOnce bool
	// Service and Timeout mean the same as in Caller.
	Service         Service
	Timeout         time.Duration
	Method, Methods int // Methods of them, from Method on, are called by chance; 0 is 1
	// Caller is the Call.Caller of all of them.
	Caller int
}

// trip is the time from the end of a call, by way of the caller, to the arrival of its
// next call.
const trip = 500 * time.Microsecond

// loopStream is the number of the first random sequence of callers in a loop. No
// workload uses it.
const loopStream = 1 << 61

// looper is one caller of a Loop.
type looper struct {
	*Loop

	random *rand.Rand
}

// admitLoops lets the first call of each caller come.
func (s *simulation) admitLoops(loops []Loop) {
	for i := range loops {
		for range loops[i].Callers {
			l := &looper{Loop: &loops[i]}
			l.random = rand.New(rand.NewPCG(s.Seed, loopStream+uint64(len(s.loopers))))
			s.loopers = append(s.loopers, l)
			s.calls(l, max(l.From-trip, 0), false)
		}
	}
}

// calls lets a caller make its next call after the one that ended at now.
func (s *simulation) calls(l *looper, now time.Duration, failed bool) {
	at := now + trip
	if l.Think != nil {
		if think := l.Think.Draw(l.random); !failed || !l.AtOnce {
			at += think
		}
	}
	if at > l.Until {
		return
	}
	call := Call{Arrives: at, Service: l.Service.Draw(l.random), Luck: l.random.Float64(), Caller: l.Caller, Method: l.Method}
	if l.Methods > 1 {
		call.Method += l.random.IntN(l.Methods)
	}
	if l.Timeout > 0 {
		call.Deadline = at + l.Timeout
	}
	s.r.Calls = append(s.r.Calls, call)
	s.r.Records = append(s.r.Records, Record{})
	s.by = append(s.by, l)
	s.events.add(event{at: at, what: comes, call: len(s.r.Calls) - 1})
	s.alive++
}

// ended lets the caller of an ended call go on, if it is in a loop.
func (s *simulation) ended(call int) {
	if call >= s.drawn {
		s.alive--
		s.calls(s.by[call-s.drawn], s.now, s.r.Records[call].Ending != Answered)
	}
}
