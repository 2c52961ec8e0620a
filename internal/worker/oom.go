package worker

import (
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/cabrank/cabrank/internal/cgroup"
)

const (
	// killedByShell is the exit status of a shell whose command KILL has ended: 128 and
	// the number of the signal.
	killedByShell = 128 + int(syscall.SIGKILL)
	// oomEvery is the time between two looks at the count of kills: a kill is taken to be
	// of a worker if it was counted at most twice as long before the worker's end was seen.
	oomEvery = 5 * time.Second

	outOfMemory  = "killed by the kernel: out of memory"
	perhapsOfMem = "nobody here has killed it; the kernel may have, for lack of memory, which this control group does not tell: see dmesg"
)

// oomWatch tells whether the kernel has killed a worker because memory was used up. The
// count of the control group does not say which process it was: it is taken to be a
// worker that KILL has ended at that time.
//
// Concurrency: its methods may be called from anywhere.
type oomWatch struct {
	count func() (int64, bool)

	mu           sync.Mutex
	older, newer int64     // counts of the last two looks
	looked       time.Time // when newer was read
	told         int64     // kills up to this count are told of some worker
}

func newOOMWatch() *oomWatch { return &oomWatch{count: cgroup.Find(os.DirFS("/")).OOMKills} }

// look reads the count now and then.
func (o *oomWatch) look(now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.looked.IsZero() && now.Sub(o.looked) < oomEvery {
		return
	}
	count, _ := o.count()
	if o.older = o.newer; o.looked.IsZero() {
		o.older = count
	}
	o.newer, o.looked = count, now
}

// killed reports whether the kernel killed a worker that KILL has ended now for lack of
// memory, and whether that is known.
func (o *oomWatch) killed() (yes, known bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	count, known := o.count()
	o.told = max(o.told, o.older)
	if !known || count <= o.told {
		return false, known
	}
	o.told++
	return true, true
}

// wasKilled reports whether KILL has ended the process, or what its shell ran.
func wasKilled(state *os.ProcessState) bool {
	if state == nil {
		return false // other code of cabrank took the status
	}
	status, ok := state.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL || state.ExitCode() == killedByShell
}

// ended returns how a process has ended, after its cleanup.
func (w *worker) ended(l *child, state *os.ProcessState) ending {
	end := ending{cause: l.cause(state), how: l.how(state)}
	if l.killed || !wasKilled(state) {
		return end
	}
	switch oom, known := w.s.ooms.killed(); {
	case oom:
		end.cause, end.how = CauseOOM, end.how+" ("+outOfMemory+")"
	case !known:
		end.hint = perhapsOfMem
	}
	return end
}
