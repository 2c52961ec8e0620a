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
)

const (
	// drainLimit is how long the output of a dead worker is read on, for the
	// sake of processes that left its group and hold its pipes.
	drainLimit = time.Second
	// killLimit is how long a process may take to die of KILL. Only one that is
	// stuck in the kernel takes longer; it is left to the keeper.
	killLimit = 2 * time.Second
	// restLimit is how long the rest of a group may take to die of KILL.
	restLimit = 500 * time.Millisecond
	restPoll  = 5 * time.Millisecond
	// maxTaken looks in a row must find a stranger on the address. One may be
	// wrong: the socket of a process that is just leaving the worker's group.
	maxTaken = 3
	// suspendedAfter is the time between two looks, which come every tickEvery, from
	// which on this process was suspended: by a signal, or with its whole container.
	suspendedAfter = time.Second
)

// life is one process of a worker, from its start to its burial.
//
// Everything in it belongs to the worker's goroutine, except what the comments
// give away. Four goroutines serve it: one waits for the exit and closes exited,
// one probes, two read the output.
type life struct {
	cmd      *exec.Cmd
	group    int // process group, and PID of its leader
	place    place
	exited   chan struct{}
	findings chan finding
	prober   *prober
	cancel   context.CancelFunc
	pipes    []*os.File   // read ends; each closed by its pump
	environ  []string     // the process's, for its hooks
	wrote    *atomic.Bool // a line, or nothing, which was told; also set by the pumps
	hook     *hookRun     // after_ready; nil if there is none, or not yet

	watched   []int     // processes that answer calls: stopped if all of them are
	began     time.Time // when it was started
	booted    time.Time // when the wait for readiness began: at the start, or when nobody listened any more
	looked    time.Time // when it was looked at last; at first, when it was started
	waiting   bool      // for readiness
	readyAt   time.Time // first readiness; zero before
	welcomed  bool      // was up once
	stopped   bool      // in state T
	stoppedAt time.Time // since when, if it is
	judge     health.Judge
	last      health.Answer // to the last question
	asking    bool          // one is under way
	asked     time.Time     // when it was put
	up        bool          // Registry.Up was the last call
	toldOf    bool          // Registry.Suspect was told since that it is silent, and gets no new calls
	toldTurns bool          // the log was told that it turns calls away, and gets one now and then (R4)
	doomed    bool          // killed by us, for doom
	doom      Cause         //
	slow      bool          // the log has told that it takes long to boot
	taken     int           // looks in a row that found a stranger
	burn      burn

	servedBefore uint64 // calls that the place had served when it was started
}

// gone reports whether the leader has exited.
func (l *life) gone() bool {
	select {
	case <-l.exited:
		return true
	default:
		return false
	}
}

// hear takes in what the prober found.
func (l *life) hear(f finding, now time.Time) {
	l.last, l.asking = f.Answer, false
	switch {
	case l.doomed: // a process that dies says nothing of why it has to
		return
	case f.taken:
		l.taken++
		l.judge.Reason = f.Reason
		return
	case l.stopped && f.Said <= health.Refused: // what it does not answer says nothing
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

// state is what the worker is doing while this life lasts: booting until it was
// ready first.
func (l *life) state(booting State) State {
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

// wasSuspended reports whether nobody has looked since long before now, because this
// process did not run. Then the time says nothing about the worker, which may have
// stood still as well, or have said much that nobody has read yet (R6).
func (l *life) wasSuspended(now time.Time) bool {
	gap := now.Sub(l.looked)
	l.looked = now
	if gap < suspendedAfter {
		return false
	}
	l.booted, l.stoppedAt = l.booted.Add(gap), l.stoppedAt.Add(gap)
	l.burn = burn{served: l.burn.served}
	l.judge.Excuse(now)
	return true
}

// trouble is why the process gets no calls, in words.
func (l *life) trouble() string {
	switch {
	case l.gone():
		return "its process has ended"
	case l.doomed:
		return "it is being killed: " + l.doom.String()
	case l.stopped:
		return "a signal has stopped it (state T)"
	}
	return l.judge.Why()
}

// delay is what the log tells of a worker that is not ready, after what: since
// when, why, and where it listens instead.
func (l *life) delay(what ...any) []any {
	told := append(what, "pid", l.group, "after", time.Since(l.booted).Round(time.Millisecond).String(), "reason", l.judge.Reason)
	if elsewhere := listensOn(l.group); len(elsewhere) > 0 {
		told = append(told, "listens_on", strings.Join(elsewhere, ", "))
	}
	return told
}

// served is how long ago the process first was ready, 0 if it never was.
func (l *life) served(now time.Time) time.Duration {
	if l.readyAt.IsZero() {
		return 0
	}
	return now.Sub(l.readyAt)
}

// cause says why the process, whose status is state, is gone.
func (l *life) cause(state *os.ProcessState) Cause {
	switch {
	case l.doomed:
		return l.doom
	case state != nil && !state.Exited():
		return CauseSignal
	default: // nil if other code of this process took the status
		return CauseExit
	}
}

// how says in words how the process ended, or why it was not waited for.
func (l *life) how(state *os.ProcessState) string {
	if l.doomed && l.judge.Reason != "" && (l.doom == CauseBootTimeout || l.doom == CauseAddressTaken) {
		return "not ready: " + l.judge.Reason // that it was killed then is no news
	}
	return state.String()
}

// startLife places the worker, makes its process and sets the four goroutines
// to work. What it runs with is in o. The error is errStopping if Stop came first.
func (w *worker) startLife(o *Options) (*life, error) {
	at, err := w.place()
	if err != nil {
		return nil, err
	}
	args := at.fill(o.Command)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = at.environ(os.Environ(), o)
	if cmd.Err != nil {
		return nil, cmd.Err // no hook for a program that is not there
	}
	if err := w.hookBeforeStart(at, cmd.Env); err != nil {
		return nil, err
	}
	pipes, ends, err := outputPipes()
	if err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = ends[0], ends[1]
	err = w.awaitSpawn(w.s.spawner.spawn(cmd))
	// An exec that hangs while Stop goes on may still need them.
	if !errors.Is(err, errStopping) {
		closeAll(ends)
	}
	if err != nil {
		closeAll(pipes)
		return nil, err
	}
	w.s.leash.add(cmd.Process.Pid)
	now := time.Now()
	l := &life{
		cmd: cmd, group: cmd.Process.Pid, place: at, pipes: pipes, environ: cmd.Env,
		began: now, booted: now, looked: now, waiting: true, judge: w.newJudge(cmd.Process.Pid),
		exited: make(chan struct{}), findings: make(chan finding), watched: []int{cmd.Process.Pid},
		servedBefore: w.activity().Served, wrote: new(atomic.Bool),
	}
	l.burn.served = l.servedBefore
	w.attend(l)
	return l, nil
}

// attend starts the goroutines of a life. bury and abandon end them.
func (w *worker) attend(l *life) {
	go func() {
		w.s.reaper.await(l.cmd)
		close(l.exited)
	}()
	for i, pipe := range l.pipes {
		line := w.output.stream([]string{"", "stderr"}[i]) // see pipes
		w.s.helpers.Go(func() {
			pump(pipe, func(text []byte) {
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

// bury ends what is left of a life whose leader has exited, and returns how the
// leader ended. It takes at most restLimit.
func (w *worker) bury(l *life) *os.ProcessState {
	state := bury(l.cmd, w.s.reaper, w.s.leash)
	w.abandon(l)
	return state
}

// bury ends what is left of a group whose leader has exited, and returns how the
// leader ended. It takes at most restLimit.
func bury(cmd *exec.Cmd, r *reaper, l *leash) *os.ProcessState {
	// The leader is still a zombie (Linux), so the number of the group cannot
	// have been used again (R18).
	group := cmd.Process.Pid
	kill(group)
	alive := groupAlive(group)
	for deadline := time.Now().Add(restLimit); alive && time.Now().Before(deadline); {
		time.Sleep(restPoll)
		alive = groupAlive(group)
	}
	// The keeper keeps what KILL did not end.
	if !alive {
		l.del(group)
	}
	return r.collect(cmd)
}

// abandon lets the helpers of a life end: the prober and the hook now, the output
// within drainLimit.
func (w *worker) abandon(l *life) {
	l.cancel()
	w.odometer.Store(nil)
	if l.hook != nil {
		l.hook.cancel()
	}
	for _, pipe := range l.pipes {
		// A pump that has finished has closed its pipe: nothing to limit then.
		_ = pipe.SetReadDeadline(time.Now().Add(drainLimit))
	}
}

// outputPipes makes the pipes for stdout and stderr: our ends and the child's.
func outputPipes() (ours, theirs []*os.File, err error) {
	for range 2 {
		reader, writer, err := os.Pipe()
		if err != nil {
			closeAll(ours)
			closeAll(theirs)
			return nil, nil, explainLimit(err)
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
