package worker

import (
	"os"
	"os/exec"
)

// Launch runs cmd.Start for a program that is not a worker: the cabrank that will take
// over. Nothing else may start children while a Supervisor runs, because the reaper
// waits for all of them (R18).
//
// The process gets no signal when this process or one of its threads ends, the keeper
// does not know it, and Stop does not end it. wait returns its exit status; it must be
// called exactly once.
func (s *Supervisor) Launch(cmd *exec.Cmd) (wait func() *os.ProcessState, err error) {
	if err := s.reaper.start(cmd); err != nil {
		return nil, err
	}
	return func() *os.ProcessState {
		s.reaper.await(cmd)
		return s.reaper.collect(cmd)
	}, nil
}
