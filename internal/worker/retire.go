package worker

import (
	"context"
	"time"

	"github.com/cabrank/cabrank/internal/process"
)

const (
	// drainPoll is how often a draining worker's calls are counted.
	drainPoll = 20 * time.Millisecond
	// cutLimit is the time for the relay to answer cut calls: it first passes on the rest
	// of a message that is on its way.
	cutLimit = 1500 * time.Millisecond
	// pageLimit bounds the last request for a metrics page.
	pageLimit = 500 * time.Millisecond
)

// retire ends a process at the end of its occupancy: it gets no new calls and finishes the
// calls that it has within the drain timeout, then the relay answers the rest, and the
// process is ended. A process that exits meanwhile needs only its cleanup.
func (w *worker) retire(l *child) {
	o := w.s.settings()
	w.s.options.Rank.Down(w.name)
	l.cancel() // no more health questions
	w.enter(Draining)
	calls := w.activity().InFlight
	w.log.Info("worker draining", "pid", l.group, "reason", w.occupancy.reason.String(), "calls", calls, "force", w.occupancy.force)
	if !w.occupancy.force {
		w.awaitCalls(l.exited, o.DrainTimeout, w.occupancy.hurry)
	}
	if l.gone() {
		// The process has ended by itself: its connections die with it, and the relay
		// answers its calls as lost. To cut them now would tell callers of a drain.
		w.awaitCalls(nil, cutLimit, nil)
	}
	if calls = w.activity().InFlight; calls > 0 && !l.gone() {
		w.log.Warn("calls are left; answering them", "pid", l.group, "calls", calls, "drain_timeout", o.DrainTimeout.String())
	}
	before := w.activity().Cuts
	// Also without calls: reflection, which takes no slot, and idle connections end
	// before the process does.
	w.s.options.Rank.Cut(w.name)
	w.awaitCalls(l.exited, cutLimit, nil)
	w.lastPage(l)
	w.end(l)
	w.occupancy.cut = int(w.activity().Cuts - before)
}

// lastPage requests the metrics page of the process once more.
func (w *worker) lastPage(l *child) {
	ask := w.s.options.LastPage
	if ask == nil || l.readyAt.IsZero() || l.gone() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), pageLimit)
	defer cancel()
	asked := make(chan struct{})
	w.s.helpers.Go(func() {
		defer close(asked)
		ask(ctx, w.board.read())
	})
	for {
		select {
		case <-w.tick.C:
			w.showBeat()
			continue
		case <-asked:
		case <-w.s.stopping:
		case <-ctx.Done():
		}
		return
	}
}

// awaitCalls waits until the worker has no calls, at most for limit. It gives up when
// one of the channels is closed, which may be nil, or Stop has come.
func (w *worker) awaitCalls(exited <-chan struct{}, limit time.Duration, hurry <-chan struct{}) {
	overtime := time.After(limit)
	poll := time.NewTicker(drainPoll)
	defer poll.Stop()
	for w.activity().InFlight > 0 {
		w.showBeat()
		select {
		case <-poll.C:
		case <-exited:
			return
		case <-hurry:
			return
		case <-w.s.stopping:
			return
		case <-overtime:
			return
		}
	}
}

// end ends a process: TERM to the group, and KILL when the time is up. Afterwards
// nothing of the group is left, unless the kernel holds it. The rest of the group keeps
// its time when the leader exits first: npm and shells exit before the server that they
// started has finished.
func (w *worker) end(l *child) {
	w.s.options.Rank.Down(w.name)
	w.enter(Stopping)
	w.hookBeforeStop(l)
	l.group.Terminate()
	killing, overtime := w.s.killing, time.After(w.s.settings().StopTimeout)
	var stuck <-chan time.Time
	exited := (<-chan struct{})(l.exited)
	poll := time.NewTicker(endPoll)
	defer poll.Stop()
	for {
		select {
		case <-exited:
			exited = nil
		case <-poll.C:
			w.showBeat()
		case <-killing:
			killing, overtime, stuck = nil, nil, w.killNow(l)
		case <-overtime:
			killing = nil
			w.log.Warn("worker ignores TERM, killed", "pid", l.group, "stop_timeout", w.s.settings().StopTimeout)
			stuck = w.killNow(l)
		case <-stuck:
			w.log.Error("worker survived SIGKILL; giving up", "pid", l.group)
			w.abandon(l)
			return
		}
		if exited == nil && (stuck != nil || !l.group.Alive()) {
			state := w.cleanUp(l)
			w.board.change(func(s *Status) { s.PID, s.LastExit = 0, state.String() })
			return
		}
	}
}

// killNow kills the group. The channel it returns fires when the time for that is up.
func (w *worker) killNow(l *child) <-chan time.Time {
	l.group.Kill()
	return time.After(process.KillLimit)
}
