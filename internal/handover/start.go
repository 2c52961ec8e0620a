package handover

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// siblingPoll is how often a process that is not a child of this one is looked for.
const siblingPoll = 50 * time.Millisecond

// Start runs cmd.Start. wait returns the end of the process.
//
// With sibling, on Linux, the new process has the same parent as this one. Only that
// parent learns how it ends, so wait returns nil. This is for services of systemd, which
// does not wait for a main process that is not its own child: after SIGTERM it kills the
// whole service at once.
func Start(cmd *exec.Cmd, sibling bool) (wait func() *os.ProcessState, err error) {
	if sibling {
		cmd.SysProcAttr = siblingAttr()
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return func() *os.ProcessState {
		if errors.Is(cmd.Wait(), syscall.ECHILD) {
			awaitSibling(cmd.Process)
		}
		return cmd.ProcessState // it tells more than the error
	}, nil
}

func awaitSibling(p *os.Process) {
	look := time.NewTicker(siblingPoll)
	defer look.Stop()
	for p.Signal(syscall.Signal(0)) == nil {
		<-look.C
	}
}
