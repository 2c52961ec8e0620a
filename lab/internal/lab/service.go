package lab

import (
	"fmt"
	"sync"
	"time"

	"github.com/cabrank/cabrank/lab/internal/report"
	"github.com/cabrank/cabrank/lab/internal/testbed"
)

// checkService reads the processes once.
//
// Errors: one line that names the first that cannot be read.
func checkService(pids []int) error {
	for _, pid := range pids {
		if _, err := testbed.ReadUse(pid); err != nil {
			return fmt.Errorf("--pid %d: %w", pid, err)
		}
	}
	return nil
}

// watchService begins to count when the warm-up is over; end tells what was used since then.
func watchService(pids []int, warmup time.Duration) (end func() []report.Process) {
	began := make([]testbed.Use, len(pids))
	var mu sync.Mutex // guards began
	read := func() {
		mu.Lock()
		defer mu.Unlock()
		for i, pid := range pids {
			if use, err := testbed.ReadUse(pid); err == nil { // else it is seen at the end
				began[i] = use
			}
		}
	}
	read() // what is known if the load is cut short in its warm-up
	later := time.AfterFunc(warmup, read)
	return func() (all []report.Process) {
		later.Stop()
		mu.Lock()
		defer mu.Unlock()
		for i, pid := range pids {
			p := report.Process{PID: pid, Name: testbed.ReadName(pid)}
			use, err := testbed.ReadUse(pid)
			if err != nil {
				p.Ended = true
			} else {
				p.CPU, p.RSS, p.PeakRSS = max(use.CPU-began[i].CPU, 0), use.RSS, use.PeakRSS
			}
			all = append(all, p)
		}
		return all
	}
}
