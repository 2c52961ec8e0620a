package lab

import (
	"fmt"
	"time"

	"github.com/cabrank/cabrank/lab/internal/report"
	"github.com/cabrank/cabrank/lab/internal/testbed"
)

type service struct {
	pids  []int
	began []testbed.Use // of each, when the counted part began
	later *time.Timer   // which reads them
	read  chan struct{} // closed when it has
}

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

// watchService begins to count when the warm-up is over.
func watchService(pids []int, warmup time.Duration) *service {
	s := &service{pids: pids, began: make([]testbed.Use, len(pids)), read: make(chan struct{})}
	s.begin() // what is known if the load is cut short in its warm-up
	if warmup == 0 {
		close(s.read)
		return s
	}
	s.later = time.AfterFunc(warmup, func() {
		defer close(s.read)
		s.begin()
	})
	return s
}

func (s *service) begin() {
	for i, pid := range s.pids {
		if use, err := testbed.ReadUse(pid); err == nil { // else it is seen at the end
			s.began[i] = use
		}
	}
}

func (s *service) end() (all []report.Process) {
	if s.later == nil || !s.later.Stop() {
		<-s.read
	}
	for i, pid := range s.pids {
		p := report.Process{PID: pid, Name: testbed.ReadName(pid)}
		use, err := testbed.ReadUse(pid)
		if err != nil {
			p.Ended = true
		} else {
			p.CPU, p.RSS, p.PeakRSS = max(use.CPU-s.began[i].CPU, 0), use.RSS, use.PeakRSS
		}
		all = append(all, p)
	}
	return all
}
