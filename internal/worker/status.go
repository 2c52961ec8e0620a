package worker

import (
	"maps"
	"sync"
	"time"
)

// State is what a worker is doing. Its String is the value of the state label
// of cabrank_worker_state.
type State uint8

const (
	// Starting is a process that has never been ready, or is about to be made.
	Starting State = iota
	// Ready is a worker that the rank was told of by Registry.Up.
	Ready
	// Suspect is a worker that is up, but silent: it keeps its calls and gets no
	// new ones until it says anything (R6).
	Suspect
	// NotServing is a process that was ready and says NOT_SERVING, has failed
	// three health checks in a row, or does not listen any more.
	NotServing
	// Stopped is a process in the kernel's state T (SIGSTOP).
	Stopped
	// Stopping is a worker that Stop is ending or has ended.
	Stopping
	// BackOff is a worker without a process, waiting for its next start.
	BackOff
	// CrashLoop is BackOff or Starting after 5 exits within 60 s. It ends with
	// the next readiness, and comes back with the next exit unless the worker
	// was ready for 60 s.
	CrashLoop
)

func (s State) String() string {
	switch s {
	case Starting:
		return "starting"
	case Ready:
		return "ready"
	case Suspect:
		return "suspect"
	case NotServing:
		return "not serving"
	case Stopped:
		return "stopped"
	case Stopping:
		return "stopping"
	case BackOff:
		return "back-off"
	case CrashLoop:
		return "crash loop"
	}
	return "unknown"
}

// States returns every State, in order, for whoever shows one row per state.
func States() []State {
	return []State{Starting, Ready, Suspect, NotServing, Stopped, Stopping, BackOff, CrashLoop}
}

// Cause is why a worker is restarted. Its String is the value of the cause
// label of cabrank_worker_restarts_total; there are no others than these six.
type Cause uint8

const (
	// CauseExit is a process that exited by itself, with any status.
	CauseExit Cause = iota
	// CauseSignal is a process that a signal ended.
	CauseSignal
	// CauseBootTimeout is a process killed because it was not ready in time.
	CauseBootTimeout
	// CauseAddressTaken is a process killed because its address turned out to be
	// somebody else's, also: the next one gets another.
	CauseAddressTaken
	// CauseExecFailed is a process that could not be made: program not found,
	// no free port, fork refused.
	CauseExecFailed
	// CauseHung is a process killed because it was silent and still for too long
	// with calls in flight, or idle and deaf to three health checks (R6).
	CauseHung
)

func (c Cause) String() string {
	switch c {
	case CauseExit:
		return "exit"
	case CauseSignal:
		return "signal"
	case CauseBootTimeout:
		return "boot timeout"
	case CauseAddressTaken:
		return "address taken"
	case CauseExecFailed:
		return "exec failed"
	case CauseHung:
		return "hung"
	}
	return "unknown"
}

// Causes returns every Cause, in order.
func Causes() []Cause {
	return []Cause{CauseExit, CauseSignal, CauseBootTimeout, CauseAddressTaken, CauseExecFailed, CauseHung}
}

// Status is what is known of one worker at one moment.
type Status struct {
	Name     string        // "worker-1"
	State    State         //
	PID      int           // leader of the process group; 0 without a process
	Network  string        // "tcp" or "unix"; empty before the first start
	Address  string        // as net.Dial takes it; kept while there is no process
	Restarts map[Cause]int // ends that led to a restart; the caller's own copy
	Since    time.Time     // when State was entered
	LastExit string        // how the last process ended ("exit status 7"), or why there was none
}

// board holds the published Status of one worker. The worker's goroutine
// writes, anybody reads.
type board struct {
	mu     sync.Mutex
	status Status
}

// change applies edit to the status and stamps a new state.
func (b *board) change(edit func(*Status)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := b.status.State
	edit(&b.status)
	if b.status.State != before {
		b.status.Since = time.Now()
	}
}

func (b *board) read() Status {
	b.mu.Lock()
	defer b.mu.Unlock()
	status := b.status
	status.Restarts = maps.Clone(status.Restarts)
	return status
}
