package testbed

import (
	"os"
	"time"

	"github.com/cabrank/cabrank/lab/internal/measure"
)

// Noise measures how much of the machine others use than this process and all that it
// has started, and what a hypervisor takes.
type Noise struct {
	began time.Time
	busy  time.Duration // of all cores, by everybody
	own   time.Duration
	known bool
}

// StartNoise begins now.
func StartNoise() *Noise {
	n := &Noise{began: time.Now()}
	n.busy, n.own, n.known = usedByAll()
	return n
}

// Cores returns how many cores others have used on average since the start; false if
// it cannot be known. Time is counted in ticks of 10 ms for each core: it takes a second
// to tell a tenth of a core.
func (n *Noise) Cores() (cores float64, known bool) {
	busy, own, known := usedByAll()
	lasted := time.Since(n.began)
	if !known || !n.known || lasted <= 0 {
		return 0, false
	}
	return max(0, ((busy-n.busy)-(own-n.own)).Seconds()/lasted.Seconds()), true
}

// usedByAll is the CPU that everybody has used, and this process with what it has
// started, also with what has ended.
func usedByAll() (busy, own time.Duration, known bool) {
	busy, err := measure.ReadBusy()
	if err != nil {
		return 0, 0, false
	}
	use, err := measure.ReadUse(os.Getpid())
	return busy, use.CPU, err == nil
}
