package methods

import "time"

// rest is how long a goroutine waits for its next call.
const rest = 100 * time.Millisecond

// crew is the goroutines that have calls, one each. Those whose call has ended wait for
// the next: the stack of a new one has to grow for each message, at 3 us a call.
type crew struct{ idle chan *call }

func newCrew() crew { return crew{make(chan *call)} }

// serve takes a call to its end, in another goroutine.
func (c crew) serve(k *call) {
	select {
	case c.idle <- k:
	default:
		go c.run(k) // ends with the call, or soon after
	}
}

func (c crew) run(k *call) {
	timer := time.NewTimer(rest)
	defer timer.Stop()
	for {
		k.serve()
		timer.Reset(rest)
		select {
		case k = <-c.idle:
		case <-timer.C:
			return
		}
	}
}
