package traffic

import (
	"runtime"
	"time"

	"github.com/cabrank/cabrank/internal/testkit/alarm"
)

const (
	// watchTime is how long before a moment the generator stops to sleep, and looks at the
	// clock: who sleeps on a virtual machine is woken 0.1 to 0.2 ms late, for its cores halt.
	watchTime = 250 * time.Microsecond
	// mostWatched is the rate in calls per second up to which it does: a quarter of a core.
	mostWatched = 1000
	// ownStep bounds what one look at the clock takes; in a longer one others have run.
	ownStep = 5 * time.Microsecond
)

// exact waits with an alarm, and with its eyes on the clock at the end.
//
// Concurrency: one goroutine at a time.
type exact struct {
	*alarm.Alarm

	watched time.Duration // CPU that the looks have taken
}

// Sleep returns after d, or at once if d is not above 0. Other goroutines run meanwhile.
func (e *exact) Sleep(d time.Duration) error {
	now := time.Now()
	end := now.Add(d)
	if err := e.Alarm.Sleep(d - watchTime); err != nil {
		return err
	}
	for now = time.Now(); now.Before(end); {
		runtime.Gosched()
		next := time.Now()
		if step := next.Sub(now); step < ownStep {
			e.watched += step
		}
		now = next
	}
	return nil
}
