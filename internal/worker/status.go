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
	// new ones until it answers (R6).
	Suspect
	// NotServing is a process that was ready and says NOT_SERVING, has failed
	// three health checks in a row, or does not listen any more.
	NotServing
	// Stopped is a process in the kernel's state T (SIGSTOP).
	Stopped
	// Draining is a worker that gets no new calls and finishes those that it has,
	// because it is replaced or surplus.
	Draining
	// Stopping is a worker that is being ended, by Stop or after its drain.
	Stopping
	// BackOff is a worker without a process, waiting for its next start.
	BackOff
	// CrashLoop is BackOff or Starting after 5 exits within 60 s. It ends with
	// the next readiness, and comes back with the next exit unless the worker
	// was ready for 60 s.
	CrashLoop
	// Vacant is a place without a worker: its spare or surplus worker has ended.
	Vacant
)

func (s State) String() string {
	return nameIn(s, "starting", "ready", "suspect", "not serving", "stopped", "draining", "stopping", "back-off", "crash loop", "vacant")
}

// States returns every State, in order, for tables with one row per state.
func States() []State { return upTo(Vacant) }

// Cause is why a worker is restarted. Its String is the value of the cause
// label of cabrank_worker_restarts_total, which has no other values.
type Cause uint8

const (
	// CauseExit is a process that exited by itself, with any status.
	CauseExit Cause = iota
	// CauseSignal is a process that a signal ended.
	CauseSignal
	// CauseBootTimeout is a process killed because it was not ready in time.
	CauseBootTimeout
	// CauseAddressTaken is a process killed because another process listens on its
	// address, too: the next one gets another address.
	CauseAddressTaken
	// CauseExecFailed is a process that could not be made: program not found,
	// no free port, fork refused.
	CauseExecFailed
	// CauseHung is a process killed because it was silent and still for too long
	// with calls in flight, or idle without an answer to three health checks (R6).
	CauseHung
	// CauseHookFailed is a process that was not made because its hook
	// before_start failed.
	CauseHookFailed
	// CauseRunTime is a process killed because a call ran there for too long,
	// and it computed (Options.MaxRunTime).
	CauseRunTime
	// CauseOOM is a process that the kernel killed because memory was used up, as far as
	// its control group tells.
	CauseOOM
)

func (c Cause) String() string {
	return nameIn(c, "exit", "signal", "boot timeout", "address taken", "exec failed", "hung", "hook failed", "run time", "oom")
}

// Causes returns every Cause, in order.
func Causes() []Cause { return upTo(CauseOOM) }

// Reason is why a worker was ended on purpose. Its String is the value of the
// reason label of cabrank_worker_retired_total.
type Reason uint8

const (
	// ReasonRoll is a rolling restart.
	ReasonRoll Reason = iota
	// ReasonScale is a surplus worker.
	ReasonScale
	// ReasonDrain is a worker that was replaced by request (cabrank drain).
	ReasonDrain
	// ReasonFailed is a new worker of a replacement that was given up.
	ReasonFailed
	// ReasonCalls is a process that served as many calls as it may.
	ReasonCalls
	// ReasonAge is a process that is as old as it may become.
	ReasonAge
	// ReasonMemory is a process group with more memory than it may have.
	ReasonMemory
	// ReasonCgroupMemory is the largest worker of a control group that comes
	// near its memory limit.
	ReasonCgroupMemory
)

func (r Reason) String() string {
	return nameIn(r, "roll", "scale", "drain", "not ready", "calls", "age", "memory", "cgroup memory")
}

// Reasons returns every Reason, in order.
func Reasons() []Reason { return upTo(ReasonCgroupMemory) }

// nameIn returns the name of a value among those of all.
func nameIn[T ~uint8](v T, names ...string) string {
	if int(v) < len(names) {
		return names[v]
	}
	return "unknown"
}

// upTo returns the values from 0 to the last.
func upTo[T ~uint8](last T) (all []T) {
	for v := range last + 1 {
		all = append(all, v)
	}
	return all
}

// Page is where the metrics page of a process may be: the process was told both.
type Page struct {
	Port   int    // of this machine
	Socket string // path of a Unix socket; empty with tcp
}

// Status is the state of one place, and of the worker in it, at one moment.
type Status struct {
	Name     string        // "worker-1"
	Index    int           // of the place, from 0
	State    State         //
	PID      int           // leader of the process group; 0 without a process
	Network  string        // "tcp" or "unix"; empty before the first start
	Address  string        // as net.Dial takes it; kept while there is no process
	Page     Page          // where its metrics page may be; kept like Address
	Restarts map[Cause]int // ends that led to a restart; the caller's own copy
	Since    time.Time     // when State was entered
	Reason   string        // why a worker with a process does not serve; empty if it serves or boots
	LastExit string        // how the last process ended ("exit status 7"), why it was not ready in time, or why it was not made

	Generation int            // of its options; each roll adds one
	Started    time.Time      // when the present process was started; zero without one
	LastCause  Cause          // of the last of Restarts
	Ends       map[Cause]int  // the part of Restarts since the last Vacant; the caller's own copy
	Retired    map[Reason]int // workers of this place that were ended on purpose; the caller's own copy
	Cut        map[Reason]int // calls of these that did not end in time and were cut; the caller's own copy

	NoHealth  bool     // its last answer to the health question: it has no health service, or none for us
	LastLines []string // that a worker has written which has ended unasked; at most tailLines
}

// board holds the published Status of one worker. The worker's goroutine
// writes it, any goroutine may read it.
type board struct {
	changed func() // called after a new state, without the lock

	mu     sync.Mutex
	status Status
}

// change applies edit to the status and stamps a new state.
func (b *board) change(edit func(*Status)) {
	if b.edit(edit) {
		b.changed()
	}
}

// edit reports whether the state is a new one.
func (b *board) edit(edit func(*Status)) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := b.status.State
	edit(&b.status)
	if b.status.State == before {
		return false
	}
	b.status.Since = time.Now()
	return true
}

func (b *board) read() Status {
	b.mu.Lock()
	defer b.mu.Unlock()
	status := b.status
	status.Restarts = maps.Clone(status.Restarts)
	status.Ends = maps.Clone(status.Ends)
	status.Retired = maps.Clone(status.Retired)
	status.Cut = maps.Clone(status.Cut)
	return status
}
