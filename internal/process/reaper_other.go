//go:build !linux

package process

import (
	"os"
	"os/exec"
)

// open does nothing: only Linux gives orphans to a subreaper.
func (r *reaper) open() error { return nil }

// await returns when the process has exited and is reaped.
func (r *reaper) await(cmd *exec.Cmd) {
	// The error repeats the status, which collect returns.
	_ = cmd.Wait()
}

// collect returns the status of a child that await returned for.
func (r *reaper) collect(cmd *exec.Cmd) *os.ProcessState {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.ours, cmd.Process.Pid)
	return cmd.ProcessState
}
