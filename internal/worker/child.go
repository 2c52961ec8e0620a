package worker

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cabrank/cabrank/internal/health"
	"github.com/cabrank/cabrank/internal/process"
)

const (
	// drainLimit is how long the output of a dead worker is still read: processes that
	// left its group may hold its pipes.
	drainLimit = time.Second
	// maxTaken is how many looks in a row must find a stranger on the address. A single
	// one may be wrong: it may see the socket of a process that is just leaving the group.
	maxTaken = 3
	// suspendedAfter is the time between two looks, which come every tickEvery, from
	// which on this process was suspended: by a signal, or with its whole container.
	suspendedAfter = time.Second
)

// child is one process of a worker, from its start until nothing of its group is left.
//
// All fields belong to the worker's goroutine, except where the comments say otherwise.
// Four goroutines serve a process: one waits for the exit and closes exited, one probes,
// two read the output.
type child struct {
	cmd      *exec.Cmd
	group    process.Group // process group, and PID of its leader
	endpoint endpoint
	exited   chan struct{}
	findings chan finding
	prober   *prober
	cancel   context.CancelFunc
	pipes    []*os.File   // read ends; each closed by its reader
	environ  []string     // of the process, for its hooks
	wrote    *atomic.Bool // it has written a line, or the log has told that it has not; its readers set it too
	hook     *hookRun     // after_ready; nil without one, and before it runs

	watched   []int     // processes that answer calls: the worker is stopped if all of them are
	began     time.Time // when it was started
	booted    time.Time // when the wait for readiness began: at the start, or when nothing listened any more
	looked    time.Time // the last look; at first, the start
	waiting   bool      // for readiness
	readyAt   time.Time // first readiness; zero before
	welcomed  bool      // was up once
	stopped   bool      // in state T
	stoppedAt time.Time // since when, if it is
	judge     health.Judge
	last      health.Answer // to the last question
	asking    bool          // a question is under way
	asked     time.Time     // when the last question was put
	up        bool          // Registry.Up was the last call
	toldOf    bool          // Registry.Suspect was called since then: it is silent and gets no new calls
	toldTurns bool          // the log was told that it turns calls away and gets one now and then (R4)
	killed    bool          // killed by the supervisor, for killCause
	killCause Cause         // see killed
	slow      bool          // the log has told that it takes long to boot
	taken     int           // looks in a row that found a stranger
	cpuWatch  cpuWatch

	servedBefore uint64 // calls that the place had served before this process
}

// gone reports whether the leader has exited.
func (l *child) gone() bool {
	select {
	case <-l.exited:
		return true
	default:
		return false
	}
}

// hear takes in a finding of the prober.
func (l *child) hear(f finding, now time.Time) {
	l.last, l.asking = f.Answer, false
	switch {
	case l.killed: // the answers of a dying process mean nothing
		return
	case f.taken:
		l.taken++
		l.judge.Reason = f.Reason
		return
	case l.stopped && f.Said <= health.Refused: // a stopped process cannot answer
		return
	}
	l.taken = 0
	l.judge.Hear(f.Answer, now)
	if !f.IsGood() {
		return
	}
	l.waiting = false
	if l.readyAt.IsZero() {
		l.readyAt = now
	}
	if len(f.owners) > 0 {
		l.watched = f.owners
	}
}

// state is the state of the worker while this process runs; until it was ready first,
// booting.
func (l *child) state(booting State) State {
	switch {
	case l.stopped:
		return Stopped
	case l.up && l.judge.Verdict() != health.OK:
		return Suspect
	case l.up:
		return Ready
	case l.readyAt.IsZero():
		return booting
	default:
		return NotServing
	}
}

// wasSuspended reports whether the last look was long before now, because cabrank itself
// did not run. Then the time tells nothing about the worker: it may have been suspended
// as well, or have written much that cabrank has not read yet (R6).
func (l *child) wasSuspended(now time.Time) bool {
	gap := now.Sub(l.looked)
	l.looked = now
	if gap < suspendedAfter {
		return false
	}
	l.booted, l.stoppedAt = l.booted.Add(gap), l.stoppedAt.Add(gap)
	l.cpuWatch = cpuWatch{served: l.cpuWatch.served}
	l.judge.Excuse(now)
	return true
}

// trouble is the reason why the process gets no calls, in words.
func (l *child) trouble() string {
	switch {
	case l.gone():
		return "its process has ended"
	case l.killed:
		return "it is being killed: " + l.killCause.String()
	case l.stopped:
		return "a signal has stopped it (state T)"
	}
	return l.judge.Why()
}

// delay returns the log attributes of a worker that is not ready, appended to what: since
// when, why, and where it listens instead.
func (l *child) delay(what ...any) []any {
	told := append(what, "pid", l.group, "after", time.Since(l.booted).Round(time.Millisecond).String(), "reason", l.judge.Reason)
	if elsewhere := l.group.ListensOn(); len(elsewhere) > 0 {
		told = append(told, "listens_on", strings.Join(elsewhere, ", "))
	}
	return told
}

// served is how long ago the process first was ready, 0 if it never was.
func (l *child) served(now time.Time) time.Duration {
	if l.readyAt.IsZero() {
		return 0
	}
	return now.Sub(l.readyAt)
}

// cause says why the process, whose status is state, is gone.
func (l *child) cause(state *os.ProcessState) Cause {
	switch {
	case l.killed:
		return l.killCause
	case state != nil && !state.Exited():
		return CauseSignal
	default: // nil if other code of cabrank took the status
		return CauseExit
	}
}

// how tells in words how the process ended, or why it was not ready in time.
func (l *child) how(state *os.ProcessState) string {
	if l.killed && l.judge.Reason != "" && (l.killCause == CauseBootTimeout || l.killCause == CauseAddressTaken) {
		return "not ready: " + l.judge.Reason // that it was killed for that is clear
	}
	return state.String()
}

// startProcess claims an address, starts a process with the options o, and starts its four
// goroutines. The error is process.ErrStopping if Stop came first.
func (w *worker) startProcess(o *Options) (*child, error) {
	at, err := w.claimEndpoint()
	if err != nil {
		return nil, err
	}
	args := at.fill(o.Command)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = at.environ(os.Environ(), o)
	if cmd.Err != nil {
		return nil, cmd.Err // no hook runs for a missing program
	}
	if err := w.hookBeforeStart(at, cmd.Env); err != nil {
		return nil, err
	}
	pipes, ends, err := outputPipes()
	if err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = ends[0], ends[1]
	err = w.awaitSpawn(w.s.children.Spawn(cmd))
	// An exec that hangs while Stop goes on may still need them.
	if !errors.Is(err, process.ErrStopping) {
		closeAll(ends)
	}
	if err != nil {
		closeAll(pipes)
		return nil, err
	}
	group := process.Group(cmd.Process.Pid)
	w.s.children.Keep(group)
	now := time.Now()
	l := &child{
		cmd: cmd, group: group, endpoint: at, pipes: pipes, environ: cmd.Env,
		began: now, booted: now, looked: now, waiting: true, judge: w.newJudge(group),
		exited: make(chan struct{}), findings: make(chan finding), watched: []int{cmd.Process.Pid},
		servedBefore: w.activity().Served, wrote: new(atomic.Bool),
	}
	l.cpuWatch.served = l.servedBefore
	w.startHelpers(l)
	return l, nil
}

// startHelpers starts the goroutines of a process. cleanUp and abandon end them.
func (w *worker) startHelpers(l *child) {
	go func() {
		w.s.children.Await(l.cmd)
		close(l.exited)
	}()
	for i, pipe := range l.pipes {
		line := w.output.stream([]string{"", "stderr"}[i]) // see pipes
		w.s.helpers.Go(func() {
			process.Lines(pipe, func(text []byte) {
				l.wrote.Store(true)
				line(text)
			})
		})
	}
	ctx, cancel := context.WithCancel(context.Background())
	l.cancel = cancel
	prober, err := w.newProber(l)
	l.prober = prober
	w.s.helpers.Go(func() {
		if err != nil {
			prober.tell(ctx, failed(err.Error()))
			return
		}
		prober.run(ctx)
	})
}

// cleanUp ends the rest of a group after its leader has exited, and returns how the leader
// ended.
func (w *worker) cleanUp(l *child) *os.ProcessState {
	state := w.s.children.CleanUp(l.cmd)
	w.abandon(l)
	return state
}

// abandon ends the helpers of a process: the prober and the hook at once, the readers of
// its output within drainLimit.
func (w *worker) abandon(l *child) {
	l.cancel()
	w.odometer.Store(nil)
	if l.hook != nil {
		l.hook.cancel()
	}
	for _, pipe := range l.pipes {
		// A reader that has finished has closed its pipe: nothing to limit then.
		_ = pipe.SetReadDeadline(time.Now().Add(drainLimit))
	}
}

// outputPipes makes the pipes for stdout and stderr: our ends and the child's.
func outputPipes() (ours, theirs []*os.File, err error) {
	for range 2 {
		reader, writer, err := process.Pipe()
		if err != nil {
			closeAll(ours)
			closeAll(theirs)
			return nil, nil, err
		}
		ours, theirs = append(ours, reader), append(theirs, writer)
	}
	return ours, theirs, nil
}

func closeAll(files []*os.File) {
	for _, file := range files {
		_ = file.Close()
	}
}
