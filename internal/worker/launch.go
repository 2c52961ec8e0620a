package worker

import (
	"os"
	"os/exec"
)

// Launch runs cmd.Start for a program that is no worker: the cabrank that is to
// take over. Nothing else may start children while a Supervisor runs, because
// one place reaps them (R18).
//
// The process is nobody's worker: it gets no signal when this process or one of
// its threads ends, the keeper does not know it, and Stop leaves it alone. wait
// returns its end, which nobody else sees; it must be called, once.
func (s *Supervisor) Launch(cmd *exec.Cmd) (wait func() *os.ProcessState, err error) {
	if err := s.reaper.start(cmd); err != nil {
		return nil, err
	}
	return func() *os.ProcessState {
		s.reaper.await(cmd)
		return s.reaper.collect(cmd)
	}, nil
}
