package health

import "time"

const (
	// looks is how often in the limit of a silence the CPU time is read, which may take a
	// look at every process of the machine; lookMax bounds the time between two such looks.
	looks   = 10
	lookMax = 3 * time.Second
	// idlePart of one processor is what hung processes may use: the runtimes of languages
	// wake up now and then to find nothing to do.
	idlePart = 500
	// lockedPart is the same of an interpreter with one lock that a call holds: its other
	// threads ask for the lock 200 times a second, three of them in 1.2 % of one.
	lockedPart = 50
	// rounding is what they may seem to use in any time: what is read are clock ticks.
	rounding = 20 * time.Millisecond
	// messageCost is what they may use beside that for each call and each question that is
	// sent to them. The library of a server on gRPC's C core takes them, refuses them or
	// queues them, and is told that they are given up: under 1 ms each.
	messageCost = 3 * time.Millisecond
)

// stillness tells for how long processes have used no CPU worth the name. The zero value
// watches nothing.
type stillness struct {
	since    time.Time     // of the first look at the present calm; zero before it
	used     time.Duration // CPU time then
	messages uint64        // calls and questions that were ever sent to them until then
	last     time.Time     // of the last look
	locked   bool          // lockedPart holds
}

// look reads the CPU time if it is time to, and returns for how long the processes of an
// endpoint have been seen to be still that has been silent for so long.
func (s *stillness) look(limit, silent time.Duration, messages uint64, p Process, now time.Time) time.Duration {
	every := min(limit/looks, lookMax)
	if silent < every || p == nil {
		*s = stillness{}
		return 0
	}
	if now.Sub(s.last) >= every {
		if used, known := p.CPU(); known {
			s.see(used, messages, now)
		}
	}
	return s.last.Sub(s.since)
}

// see takes in the CPU time. Processes of which one has ended have used less than before:
// that counts as use, too.
func (s *stillness) see(used time.Duration, messages uint64, now time.Time) {
	s.last = now
	part := time.Duration(idlePart)
	if s.locked {
		part = lockedPart
	}
	free := rounding + now.Sub(s.since)/part + messageCost*time.Duration(messages-s.messages)
	if s.since.IsZero() || used < s.used || used-s.used > free {
		s.since, s.used, s.messages = now, used, messages
	}
}
