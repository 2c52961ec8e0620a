package testbed

import (
	"os"
	"time"

	"github.com/cabrank/cabrank/lab/internal/measure"
)

// StartNoise begins to measure how much of the machine others use than this process and all
// that it has started, and what a hypervisor takes. What it returns tells how many cores that
// were on average since then; 0 if it cannot be known. Time is counted in ticks of 10 ms for
// each core: it takes a second to tell a tenth of a core.
func StartNoise() (cores func() float64) {
	began := time.Now()
	busyThen, ownThen, knownThen := usedByAll()
	return func() float64 {
		busy, own, known := usedByAll()
		lasted := time.Since(began)
		if !known || !knownThen || lasted <= 0 {
			return 0
		}
		return max(0, ((busy-busyThen)-(own-ownThen)).Seconds()/lasted.Seconds())
	}
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
