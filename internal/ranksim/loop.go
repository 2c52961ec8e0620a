package ranksim

import (
	"math/rand/v2"
	"time"
)

// Loop is callers in a closed loop: each waits for the end of its call before it
// makes the next one, whatever that end was. How many calls come depends on what
// serves them, so they cannot be drawn in advance; how long each one runs and what
// its caller does in between is drawn by the caller's own sequence.
type Loop struct {
	// Callers is how many there are, each with one call at a time.
	Callers int
	// From is when each makes its first call, up to Think later; after Until they
	// make no more.
	From, Until time.Duration
	// Think is the time between the end of a call and the next one; nil is none.
	// It comes on top of the trip between caller and rank.
	Think Service
	// AtOnce means that a caller whose call has failed does not think first.
	AtOnce bool
	// Service, Method and Timeout are those of a Caller.
	Service Service
	Method  int
	Timeout time.Duration
	// Caller is the Call.Caller of all of them.
	Caller int
}

// trip is how long it takes until a caller has heard the end of its call and its
// next one has come.
const trip = 500 * time.Microsecond

// loopStream is the number of the first random sequence of callers in a loop: none
// of a workload's.
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

// calls has a caller make its next call after the one that ended at now.
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
	call := Call{
		Arrives: at, Service: l.Service.Draw(l.random), Luck: l.random.Float64(),
		Caller: l.Caller, Method: l.Method,
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

// ended tells the caller of a call, if it is in a loop.
func (s *simulation) ended(call int) {
	if call >= s.drawn {
		s.alive--
		s.calls(s.by[call-s.drawn], s.now, s.r.Records[call].Ending != Answered)
	}
}
