package worker

import (
	"context"
	"time"
)

const (
	// drainPoll is how often a draining worker's calls are counted.
	drainPoll = 20 * time.Millisecond
	// cutLimit is how long the answers of cut calls may take to be made: the rest
	// of a message that is on its way is waited for.
	cutLimit = 1500 * time.Millisecond
	// pageLimit bounds the last question for a metrics page.
	pageLimit = 500 * time.Millisecond
)

// retire ends a process whose tenure is over: it gets no new calls, finishes
// those that it has within the drain timeout, what is left is answered by the
// relay, then it is ended. A process that exits meanwhile is only buried.
func (w *worker) retire(l *life) {
	o := w.s.settings()
	w.s.options.Rank.Down(w.name)
	l.cancel() // nobody asks it any more
	w.enter(Draining)
	calls := w.activity().InFlight
	w.log.Info("worker draining", "pid", l.group, "reason", w.tenure.reason.String(), "calls", calls, "force", w.tenure.force)
	if !w.tenure.force {
		w.awaitCalls(l.exited, o.DrainTimeout, w.tenure.hurry)
	}
	if l.gone() {
		// Nobody has ended it: its connections die with it, and the relay tells its
		// calls that they are lost. To cut them now would call it a drain.
		w.awaitCalls(nil, cutLimit, nil)
	}
	if calls = w.activity().InFlight; calls > 0 && !l.gone() {
		w.log.Warn("calls are left; answering them", "pid", l.group, "calls", calls, "drain_timeout", o.DrainTimeout.String())
	}
	before := w.activity().Cuts
	// Also without calls: what has no slot (reflection), and idle connections, go
	// before the process does.
	w.s.options.Rank.Cut(w.name)
	w.awaitCalls(l.exited, cutLimit, nil)
	w.lastPage(l)
	w.end(l)
	w.tenure.cut = int(w.activity().Cuts - before)
}

// lastPage has the process asked once more for what it has counted.
func (w *worker) lastPage(l *life) {
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

// awaitCalls waits until the worker has no calls, for so long at most. It gives
// up when the process has exited, if it is told by a channel, when hurry is closed
// or Stop has come.
func (w *worker) awaitCalls(exited <-chan struct{}, limit time.Duration, hurry <-chan struct{}) {
	overtime := time.NewTimer(limit)
	defer overtime.Stop()
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
		case <-overtime.C:
			return
		}
	}
}

// end ends a process: TERM to the group, and KILL when the time is up. Afterwards
// nothing of the group is left, unless the kernel holds it. A leader that leaves
// first takes nothing from the others' time: npm and shells go before the server
// that they started has finished.
func (w *worker) end(l *life) {
	w.s.options.Rank.Down(w.name)
	w.enter(Stopping)
	w.hookBeforeStop(l)
	terminate(l.group)
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
			w.log.Error("worker does not die of KILL, left behind", "pid", l.group)
			w.abandon(l)
			return
		}
		if exited == nil && (stuck != nil || !groupAlive(l.group)) {
			state := w.bury(l)
			w.board.change(func(s *Status) { s.PID, s.LastExit = 0, state.String() })
			return
		}
	}
}

// killNow returns the end of the time that KILL may take.
func (w *worker) killNow(l *life) <-chan time.Time {
	kill(l.group)
	return time.After(killLimit)
}
