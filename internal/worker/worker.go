package worker

import (
	"errors"
	"log/slog"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

const (
	// tickEvery is how often a worker's goroutine shows that it is alive, and
	// looks whether its process is stopped or overdue (R6: out of the rank
	// within a second).
	tickEvery = 250 * time.Millisecond
	// endPoll is how often the rest of a group is looked for after its leader
	// has left, while Stop waits.
	endPoll = 50 * time.Millisecond
	// slowBoot is the age at which the log tells why a worker is not ready, or
	// half of the boot timeout if that is less: who listens on a wrong port
	// should not wait a minute for the hint.
	slowBoot = 10 * time.Second
)

// noBeat in worker.beat says that no beat is due: the goroutine has not begun
// or has ended.
const noBeat = math.MaxInt64

// worker is one place in the supervisor: a name whose processes come and go.
type worker struct {
	// Set by newWorker, never changed.
	s      *Supervisor
	number int // 0 for worker-1
	name   string
	log    *slog.Logger
	output *source

	// Owned by the goroutine of run; no lock.
	index   int // of the current place
	backOff backOff
	tick    *time.Ticker

	// Written by the goroutine of run, read by anybody.
	board board
	beat  atomic.Int64 // time since Supervisor.began of the last tick, or noBeat
}

func newWorker(s *Supervisor, number int, name string) *worker {
	w := &worker{
		s: s, number: number, index: number, name: name,
		log:    s.options.Logger.With("worker", name),
		output: s.sink.source(name),
	}
	w.beat.Store(noBeat)
	w.board.status = Status{Name: name, Since: s.began, Restarts: make(map[Cause]int)}
	return w
}

// run makes one life after the other until Stop. first, if not nil, gets the
// result of the first exec; if that failed there is no second.
func (w *worker) run(first chan<- error) {
	w.tick = time.NewTicker(tickEvery)
	defer w.tick.Stop()
	defer w.beat.Store(noBeat)
	defer w.enter(Stopping)
	for {
		w.showBeat()
		w.enter(w.looping(Starting))
		l, err := w.startLife()
		if first != nil {
			first <- err
			if err != nil {
				return
			}
			first = nil
		}
		var end ending
		switch {
		case errors.Is(err, errStopping):
			return
		case err != nil:
			end = ending{cause: CauseExecFailed, how: err.Error()}
		default:
			w.begin(l)
			var stopping bool
			if end, stopping = w.live(l); stopping {
				return
			}
		}
		if !w.rest(end) {
			return
		}
	}
}

// ending is how a life ended, or why there was none.
type ending struct {
	cause  Cause
	how    string
	served time.Duration // since it was ready first
}

// begin publishes a new life.
func (w *worker) begin(l *life) {
	w.log.Debug("worker started", "pid", l.group, "address", l.place.address)
	w.board.change(func(s *Status) {
		s.State, s.PID = l.state(w.looping(Starting)), l.group
		s.Network, s.Address = l.place.network, l.place.address
	})
}

// live watches a process until it has exited and is buried, or until Stop has
// ended it.
func (w *worker) live(l *life) (end ending, stopping bool) {
	for {
		select {
		case <-l.exited:
			// Before anything else: no call may be sent to a dead process.
			w.s.options.Rank.Down(w.name)
			end.served = l.served(time.Now())
			state := w.bury(l)
			end.cause, end.how = l.cause(state), state.String()
			return end, false
		case v := <-l.verdicts:
			l.hear(v, time.Now())
			l.speak(w.activity().Heard)
			w.settle(l)
			if l.taken >= maxTaken {
				w.doom(l, CauseAddressTaken)
			}
		case <-w.tick.C:
			w.showBeat()
			w.look(l)
		case <-w.s.stopping:
			w.end(l)
			return end, true
		}
	}
}

// look finds out what no message tells: a process stopped by a signal, one that
// does not listen any more, is silent for too long, or takes too long to boot.
func (w *worker) look(l *life) {
	now, work := time.Now(), w.activity()
	l.stopped = allStopped(l.watched)
	l.prober.paused.Store(l.stopped)
	if l.stopped {
		l.hang = hang{excused: now} // its silence says nothing
	}
	w.checkListener(l, now)
	l.speak(work.Heard)
	w.settle(l)
	if l.waiting {
		w.checkBoot(l, now)
	} else if !l.stopped {
		w.checkHang(l, work, now)
	}
}

// checkHang ends a process that hangs.
func (w *worker) checkHang(l *life, work Work, now time.Time) {
	s := w.signs(l, work, now)
	if !s.hung(w.s.options.HangTimeout) || l.doomed {
		return
	}
	w.log.Warn("worker hung, killed", "pid", l.group, "calls", s.inFlight, "silent", s.silent.Round(time.Millisecond).String(),
		"checks_missed", s.missed, "reason", l.reason)
	w.doom(l, CauseHung)
}

// checkListener takes a worker out whose server has died while its leader, a
// shell or a supervisor of its own, lives on (R6: within a second). Another
// server may come, for which it has as long as for its first one.
func (w *worker) checkListener(l *life, now time.Time) {
	if l.waiting || l.gone() || !deserted(l.group, l.watched) {
		return
	}
	owners, err := listenerOwners(l.group, l.place.network, l.place.address)
	switch {
	case err != nil:
		l.serving, l.waiting, l.booted, l.slow = false, true, now, false
		l.suspect, l.missed, l.failures = false, 0, 0
		l.reason = err.Error()
		l.watched = []int{l.group}
		l.prober.deserted.Store(true)
	case len(owners) > 0:
		l.watched = owners // the server has replaced its processes
	}
}

// checkBoot ends a process that is not ready in time.
func (w *worker) checkBoot(l *life, now time.Time) {
	age, limit := now.Sub(l.booted), w.s.options.BootTimeout
	if age > min(slowBoot, limit/2) && !l.slow {
		l.slow = true
		w.log.Info("worker not ready yet", l.delay("boot_timeout", limit)...)
	}
	if age > limit {
		w.doom(l, CauseBootTimeout)
	}
}

// doom kills a process that will not serve any more. live sees its end.
func (w *worker) doom(l *life, cause Cause) {
	if l.doomed {
		return
	}
	l.doomed, l.doom = true, cause
	if cause != CauseHung {
		w.log.Warn("worker killed before it was ready", l.delay("cause", cause.String())...)
	}
	kill(l.group)
}

// settle tells the rank what has changed.
func (w *worker) settle(l *life) {
	able := l.serving && !l.stopped && !l.doomed && !l.gone()
	switch {
	case able && !l.up:
		w.s.options.Rank.Up(w.name, l.place.network, l.place.address)
		w.s.everReady.Store(true)
		w.log.Info("worker ready", "pid", l.group, "address", l.place.address, "after", time.Since(l.booted).Round(time.Millisecond).String())
	case !able && l.up:
		w.s.options.Rank.Down(w.name)
		w.log.Warn("worker takes no calls", "pid", l.group, "stopped", l.stopped, "reason", l.reason)
	}
	l.toldOf = l.toldOf && able == l.up
	l.up = able
	w.settleSuspicion(l)
	w.enter(l.state(w.looping(Starting)))
}

// settleSuspicion tells the rank of a worker that is up whether it is suspect.
func (w *worker) settleSuspicion(l *life) {
	if !l.up || l.suspect == l.toldOf {
		return
	}
	l.toldOf = l.suspect
	w.s.options.Rank.Suspect(w.name, l.suspect)
	if l.suspect {
		w.log.Warn("worker is silent and gets no new calls", "pid", l.group, "reason", l.reason)
	} else {
		w.log.Info("worker speaks again", "pid", l.group)
	}
}

// activity is what the data plane sees of the worker now.
func (w *worker) activity() Work { return w.s.options.Activity.Activity(w.name) }

// rest waits before the next start and reports false if Stop came first.
func (w *worker) rest(end ending) bool {
	wasLooping := w.backOff.looping
	wait := w.backOff.exited(time.Since(w.s.began), end.served, rand.Float64())
	state := w.looping(BackOff)
	w.board.change(func(s *Status) {
		s.State, s.PID, s.LastExit = state, 0, end.how
		s.Restarts[end.cause]++
	})
	w.log.Warn("worker ended", "cause", end.cause.String(), "how", end.how, "restart_in", wait.Round(time.Millisecond))
	if w.backOff.looping && !wasLooping {
		w.log.Error("worker in a crash loop: 5 exits within 60 s", "how", end.how)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			return true
		case <-w.tick.C:
			w.showBeat()
		case <-w.s.stopping:
			return false
		}
	}
}

// end is Stop's part in a life: TERM to the group, and KILL when the time is
// up. Afterwards nothing of the group is left, unless the kernel holds it. A
// leader that leaves first takes nothing from the others' time: npm and shells
// go before the server that they started has finished.
func (w *worker) end(l *life) {
	w.s.options.Rank.Down(w.name)
	w.enter(Stopping)
	terminate(l.group)
	killing, overtime := w.s.killing, time.After(w.s.options.StopTimeout)
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
			w.log.Warn("worker ignores TERM, killed", "pid", l.group, "stop_timeout", w.s.options.StopTimeout)
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

// place claims the address for the next life.
func (w *worker) place() (place, error) {
	at, err := w.s.places.claim(w.number, w.index)
	if err == nil && at.index != w.index {
		w.log.Warn("port is taken, using a spare one", "taken", w.s.options.StartPort+w.index, "address", at.address)
		w.index = at.index
	}
	return at, err
}

// awaitSpawn waits for the result of an exec. After the beginning of Stop it
// waits no longer than Stop does, and then returns errStopping.
func (w *worker) awaitSpawn(request *spawning) error {
	stopping := w.s.stopping
	var giveUp <-chan time.Time
	for {
		select {
		case err := <-request.result:
			return err
		case <-w.tick.C:
			w.showBeat()
		case <-stopping:
			stopping, giveUp = nil, time.After(w.s.options.StopTimeout)
		case <-w.s.killing:
			close(request.abandoned)
			return errStopping
		case <-giveUp:
			close(request.abandoned)
			return errStopping
		}
	}
}

// looping returns CrashLoop in place of state while that is what it is.
func (w *worker) looping(state State) State {
	if w.backOff.looping {
		return CrashLoop
	}
	return state
}

// enter publishes a state.
func (w *worker) enter(state State) {
	w.board.change(func(s *Status) { s.State = state })
}

func (w *worker) showBeat() { w.beat.Store(int64(time.Since(w.s.began))) }
