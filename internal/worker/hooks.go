package worker

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/cabrank/cabrank/internal/process"
)

// The names of the hooks, as in the configuration and in CABRANK_HOOK.
const (
	beforeStart = "before_start"
	afterReady  = "after_ready"
	beforeStop  = "before_stop"
)

// Hooks are commands around the life of each worker process. An empty one is
// none.
//
// In arguments {addr}, {host}, {port}, {index} and {worker} are replaced as in
// the worker's own. A hook runs in the worker's environment with CABRANK_HOOK,
// its name, and CABRANK_WORKER_PID while there is a process. It leads a process
// group of its own; what is left of it when the hook exits is killed. Its output
// goes where the worker's goes, marked. One that runs for longer than Settings.BootTimeout
// is killed with its group.
type Hooks struct {
	// BeforeStart runs before every start of the process. If it fails there is no
	// process: the start has failed, for CauseHookFailed.
	BeforeStart []string `key:"before_start" kind:"command" default:"none" help:"is run before each start of a worker; if it fails the start has failed"`
	// AfterReady runs when the process takes calls, for the first time. Its
	// failure is logged. It is ended with its process.
	AfterReady []string `key:"after_ready" kind:"command" default:"none" help:"is run when a worker has become ready; its failure is only logged"`
	// BeforeStop runs when a process is to be ended that has no calls left,
	// before it gets TERM. Its failure is logged. Processes that end or are killed
	// for a fault have none.
	BeforeStop []string `key:"before_stop" kind:"command" default:"none" help:"is run before a worker gets SIGTERM, when its calls have ended; its failure is only logged"`
}

// hookError is how a hook failed.
type hookError struct {
	hook string
	err  error
	made bool // its program was executed
}

func (e *hookError) Error() string { return "hook " + e.hook + ": " + e.err.Error() }

func (e *hookError) Unwrap() error { return e.err }

// IsHook reports whether an error of Start is one of a hook.
func IsHook(err error) bool {
	_, is := errors.AsType[*hookError](err)
	return is
}

// hookRunner runs hooks. They are made and reaped like workers (R18).
type hookRunner struct {
	children *process.Children
	running  sync.WaitGroup // every hook and the reader of its output
}

// hookCall is a hook to run.
type hookCall struct {
	name    string
	command []string     // filled in
	environ []string     // complete
	line    func([]byte) // takes its output
	limit   time.Duration
	late    bool // may also start during Stop
}

// hookRun is a hook under way.
type hookRun struct {
	ended  chan struct{} // closed when it is over
	err    error         // how it failed; to be read after ended
	cancel func()        // kills it; it may be called at any time
}

// hookEnviron is the environment of a hook: the worker's, and the variables of hooks.
// pid is 0 without a process.
func hookEnviron(worker []string, name string, pid int) []string {
	env := append(slices.Clip(worker), "CABRANK_HOOK="+name)
	if pid > 0 {
		env = append(env, "CABRANK_WORKER_PID="+strconv.Itoa(pid))
	}
	return env
}

// start starts a hook and returns at once. It is over, whatever it does, within
// its limit and 3 s.
func (h *hookRunner) start(call hookCall) *hookRun {
	ctx, cancel := context.WithCancelCause(context.Background())
	run := &hookRun{ended: make(chan struct{}), cancel: func() { cancel(process.ErrStopping) }}
	h.running.Go(func() {
		defer close(run.ended)
		defer cancel(nil)
		if made, err := h.run(ctx, call); err != nil {
			run.err = &hookError{call.name, err, made}
		}
	})
	return run
}

// run runs a hook to its end; made reports that its program was executed.
func (h *hookRunner) run(ctx context.Context, call hookCall) (made bool, err error) {
	late := fmt.Errorf("not over after %v, killed", call.limit)
	ctx, cancel := context.WithTimeoutCause(ctx, call.limit, late)
	defer cancel()
	pipe, end, err := process.Pipe()
	if err != nil {
		return false, err
	}
	cmd := exec.Command(call.command[0], call.command[1:]...)
	cmd.Env, cmd.Stdout, cmd.Stderr = call.environ, end, end
	err = h.children.Start(ctx, cmd, call.late)
	// An exec that hangs may still need the pipe.
	if err == nil || ctx.Err() == nil {
		_ = end.Close()
	}
	if err != nil {
		_ = pipe.Close()
		return false, err
	}
	h.running.Go(func() { process.Lines(pipe, call.line) })
	err = h.watch(ctx, cmd)
	// A reader that has finished has closed its pipe, which then needs no deadline.
	_ = pipe.SetReadDeadline(time.Now().Add(drainLimit))
	return true, err
}

// watch follows a hook's process until nothing of its group is left.
func (h *hookRunner) watch(ctx context.Context, cmd *exec.Cmd) error {
	group := process.Group(cmd.Process.Pid)
	h.children.Keep(group)
	exited := make(chan struct{})
	go func() {
		h.children.Await(cmd)
		close(exited)
	}()
	var cut error
	select {
	case <-exited:
	case <-ctx.Done():
		cut = context.Cause(ctx)
		group.Kill()
		select {
		case <-exited:
		case <-time.After(process.KillLimit):
			// The keeper keeps it; waiting would not help.
			return fmt.Errorf("%w, but does not die of KILL", cut)
		}
	}
	state := h.children.CleanUp(cmd)
	switch {
	case cut != nil:
		return cut
	case !state.Success():
		return errors.New(state.String())
	}
	return nil
}

// hook starts the worker's hook with a name, or returns nil if it is not configured.
// pid is 0 without a process.
func (w *worker) hook(name string, at endpoint, environ []string, pid int) *hookRun {
	hooks := &w.occupancy.version.options.Hooks
	command := map[string][]string{
		beforeStart: hooks.BeforeStart, afterReady: hooks.AfterReady, beforeStop: hooks.BeforeStop,
	}[name]
	if len(command) == 0 {
		return nil
	}
	w.log.Debug("hook started", "hook", name, "pid", pid)
	return w.s.hooks.start(hookCall{
		name: name, command: at.fill(command), environ: hookEnviron(environ, name, pid),
		line: w.output.hook(name), limit: w.occupancy.version.options.BootTimeout, late: name == beforeStop,
	})
}

// hookBeforeStart runs the hook and returns how it failed; process.ErrStopping if Stop or
// the end of the occupancy came first.
func (w *worker) hookBeforeStart(at endpoint, environ []string) error {
	run := w.hook(beforeStart, at, environ, 0)
	if run == nil {
		return nil
	}
	if w.awaitHook(run, w.s.stopping, w.occupancy.leave) {
		return process.ErrStopping
	}
	return run.err
}

// hookAfterReady starts the hook of a process that has become ready for the
// first time. abandon ends it.
func (w *worker) hookAfterReady(l *child) {
	l.hook = w.hook(afterReady, l.endpoint, l.environ, int(l.group))
	if run := l.hook; run != nil {
		w.s.helpers.Go(func() {
			<-run.ended
			w.logHook(run)
		})
	}
}

// hookBeforeStop runs the hook of a process that is about to get TERM, if the process
// has been ready and lives.
func (w *worker) hookBeforeStop(l *child) {
	if l.readyAt.IsZero() || l.gone() {
		return
	}
	run := w.hook(beforeStop, l.endpoint, l.environ, int(l.group))
	if run == nil {
		return
	}
	w.awaitHook(run, w.s.killing, nil)
	w.logHook(run)
}

// logHook logs the failure of a hook, unless the supervisor ended it.
func (w *worker) logHook(run *hookRun) {
	if run.err != nil && !errors.Is(run.err, process.ErrStopping) {
		w.log.Warn("hook failed", "error", run.err)
	}
}

// awaitHook waits for the end of a hook without missing a beat. If one of the channels is
// closed first it cancels the hook, and reports that.
func (w *worker) awaitHook(run *hookRun, stop, leave <-chan struct{}) (cancelled bool) {
	for {
		select {
		case <-run.ended:
			return cancelled
		case <-w.tick.C:
			w.showBeat()
			continue
		case <-stop:
		case <-leave:
		}
		cancelled, stop, leave = true, nil, nil
		run.cancel()
	}
}
