package worker

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/cabrank/cabrank/internal/health"
	"github.com/cabrank/cabrank/internal/process"
)

const (
	// tickEvery is how often a worker's goroutine shows that it is alive, and
	// checks whether its process is stopped or overdue (R6: out of the rank
	// within a second).
	tickEvery = 250 * time.Millisecond
	// endPoll is how often the rest of a group is looked for after its leader
	// has left, while Stop waits.
	endPoll = 50 * time.Millisecond
	// slowBoot is the age at which the log tells why a worker is not ready, or
	// half of the boot timeout if that is less: the hint about a wrong port should
	// not take a minute.
	slowBoot = 10 * time.Second
)

// noBeat in worker.beat means that no beat is due: the goroutine has not begun
// or has ended.
const noBeat = math.MaxInt64

// worker is one place in the supervisor: a name whose processes come and go. It has
// one occupancy after the other; between them it is vacant.
type worker struct {
	// Set by newWorker, never changed.
	s      *Supervisor
	number int // 0 for worker-1
	name   string
	log    *slog.Logger
	output *source

	// Owned by the goroutine of run, of which there is one at a time; no lock.
	occupancy *occupancy
	index     int    // of the current address
	faulty    string // warm-up method that the log has reported as missing
	backOff   backOff
	tick      *time.Ticker

	// Written by the goroutine of run and, while the place is vacant, by the
	// foreman; read by anybody.
	board board
	beat  atomic.Int64 // time since Supervisor.began of the last tick, or noBeat

	odometer atomic.Pointer[odometer] // of the present process; nil before its first readiness
}

func newWorker(s *Supervisor, number int, name string) *worker {
	w := &worker{
		s: s, number: number, index: number, name: name,
		log:    s.options.Logger.With("worker", name),
		output: newSource(s.sink, s.options.Output, name),
	}
	w.beat.Store(noBeat)
	w.board.changed = s.wake
	w.board.status = Status{
		Name: name, Index: number, State: Vacant, Since: s.began,
		Restarts: make(map[Cause]int), Retired: make(map[Reason]int), Cut: make(map[Reason]int),
	}
	return w
}

// occupy gives the vacant place to an occupancy, before its goroutine runs.
func (w *worker) occupy(t *occupancy) {
	w.occupancy, w.backOff = t, backOff{}
	w.board.change(func(s *Status) {
		s.State, s.Generation = Starting, t.version.generation
		s.Ends, s.LastExit, s.Reason = make(map[Cause]int), "", "" // they belong to the occupancy before
	})
}

// vacate is the last thing that the goroutine of an occupancy does.
func (w *worker) vacate() {
	w.tick.Stop()
	w.beat.Store(noBeat)
	t := w.occupancy
	select {
	case <-t.leave:
		w.log.Info("worker retired", "reason", t.reason.String(), "generation", t.version.generation)
		w.board.change(func(s *Status) {
			s.Retired[t.reason]++
			s.Cut[t.reason] += t.cut
		})
	default:
	}
	w.board.change(func(s *Status) { s.State, s.PID, s.Started = Vacant, 0, time.Time{} })
}

// run starts one process after the other until Stop or the end of the occupancy. first,
// if not nil, gets the result of the first exec; if that failed run returns.
func (w *worker) run(t *occupancy, first chan<- error) {
	w.tick = time.NewTicker(tickEvery)
	defer w.vacate()
	for {
		w.showBeat()
		w.enter(w.looping(Starting))
		l, err := w.startProcess(t.version.options)
		if first != nil {
			fault := faultOf(err)
			first <- fault
			if fault != nil {
				return
			}
			first = nil
		}
		var end ending
		switch {
		case errors.Is(err, process.ErrStopping):
			return
		case err != nil:
			end = ending{cause: causeOf(err), how: err.Error()}
		default:
			w.begin(l)
			var over bool
			if end, over = w.live(l); over {
				return
			}
		}
		if !w.rest(end) {
			return
		}
	}
}

// faultOf returns the error after which the first start is not tried again: every error
// but that of a hook which ran and failed. That hook may wait for a database.
func faultOf(err error) error {
	var hook *hookError
	if errors.As(err, &hook) && hook.made && !errors.Is(err, process.ErrStopping) {
		return nil
	}
	return err
}

// causeOf is why a start failed.
func causeOf(err error) Cause {
	if hook := (*hookError)(nil); errors.As(err, &hook) {
		return CauseHookFailed
	}
	return CauseExecFailed
}

// ending is how a process ended, or why it was not made.
type ending struct {
	cause  Cause
	how    string
	hint   string        // what else may have ended it
	served time.Duration // since it was ready first
}

// begin publishes a new process.
func (w *worker) begin(l *child) {
	w.log.Debug("worker started", "pid", l.group, "address", l.endpoint.address)
	w.board.change(func(s *Status) {
		s.State, s.PID, s.Started = l.state(w.looping(Starting)), int(l.group), l.began
		s.Network, s.Address = l.endpoint.network, l.endpoint.address
		s.Page = Page{Port: l.endpoint.metricsPort, Socket: l.endpoint.metricsPath}
	})
}

// live watches a process until it has exited and nothing is left of it, or until Stop or
// the end of the occupancy has ended it; over reports the latter two.
func (w *worker) live(l *child) (end ending, over bool) {
	for {
		select {
		case <-l.exited:
			// Before anything else: no call may be sent to a dead process.
			w.s.options.Rank.Down(w.name)
			served := l.served(time.Now())
			end = w.ended(l, w.cleanUp(l))
			end.served = served
			return end, false
		case f := <-l.findings:
			l.hear(f, time.Now())
			w.hearWarmUp(f)
			w.warnIfBlind(f)
			l.judge.Speak(w.activity().Heard)
			w.report(l)
			if l.taken >= maxTaken {
				w.killFor(l, CauseAddressTaken)
			}
		case <-w.tick.C:
			w.showBeat()
			w.look(l)
		case <-w.occupancy.leave:
			w.retire(l)
			return end, true
		case <-w.s.stopping:
			w.end(l)
			return end, true
		}
	}
}

// warnIfBlind logs once that listeners are not checked.
func (w *worker) warnIfBlind(f finding) {
	if !f.blind {
		return
	}
	w.s.blindOnce.Do(func() {
		w.s.options.Logger.Warn("cannot check which process owns a port; trusting whatever answers at the worker's address", "reason", process.ErrBlind)
	})
}

// look finds out what no message tells: whether the process is stopped by a signal, does
// not listen any more, is silent for too long, or takes too long to boot.
func (w *worker) look(l *child) {
	now, work := time.Now(), w.activity()
	w.s.ooms.look(now)
	if l.wasSuspended(now) {
		return // first hear the findings that have come meanwhile
	}
	l.judge.Timeout = w.s.settings().HangTimeout
	w.lookIfStopped(l, now)
	w.checkListener(l, now)
	switch {
	case l.stopped || l.waiting:
		l.judge.Speak(work.Heard)
	default:
		l.judge.Look(work, l.asked, now)
		w.ask(l, now)
	}
	w.report(l)
	switch {
	case l.waiting:
		w.s.warnIfShared(now)
		w.checkBoot(l, now)
	case !l.stopped:
		w.hintIfQuiet(l, now)
		w.checkHang(l)
		w.checkRunTime(l, work, now)
	}
}

// lookIfStopped notes whether the process is stopped by a signal. A process that stays
// stopped for the hang timeout is replaced: its calls wait for nothing (R6).
func (w *worker) lookIfStopped(l *child, now time.Time) {
	was := l.stopped
	l.stopped = process.AllStopped(l.watched)
	if !l.stopped {
		return
	}
	l.judge.Excuse(now)
	if !was {
		l.stoppedAt = now
	}
	if limit := w.s.settings().HangTimeout; limit > 0 && now.Sub(l.stoppedAt) >= limit && !l.killed {
		w.log.Warn("worker stopped by a signal for too long, killed", "pid", l.group, "hang_timeout", limit)
		w.killFor(l, CauseHung)
	}
}

// newJudge makes the judge of a process group.
func (w *worker) newJudge(group process.Group) health.Judge {
	return health.Judge{Timeout: w.s.settings().HangTimeout, Process: group}
}

// checkHang ends a process that hangs.
func (w *worker) checkHang(l *child) {
	if l.judge.Verdict() == health.Hung && !l.killed {
		w.log.Warn("worker hung, killed", append([]any{"pid", l.group}, l.judge.ToldHung()...)...)
		w.killFor(l, CauseHung)
	}
}

// checkListener takes a worker out of the rank when its server has died while the
// leader, a shell or another supervisor, lives on (R6: within a second). The worker may
// start another server, and has the boot timeout for that.
func (w *worker) checkListener(l *child, now time.Time) {
	if l.waiting || l.gone() || !l.group.HasNone(l.watched) {
		return
	}
	owners, err := l.group.Listeners(l.endpoint.network, l.endpoint.address)
	switch {
	case errors.Is(err, process.ErrBlind):
	case err != nil:
		l.waiting, l.booted, l.slow = true, now, false
		l.judge = w.newJudge(l.group)
		l.judge.Reason = err.Error()
		l.watched = []int{int(l.group)}
		l.prober.orders <- bootAgain // the prober reads it when its present question has ended
	case len(owners) > 0:
		l.watched = owners // the server now runs in other processes
	}
}

// checkBoot ends a process that is not ready in time.
func (w *worker) checkBoot(l *child, now time.Time) {
	age, limit := now.Sub(l.booted), w.s.settings().BootTimeout
	if age > min(slowBoot, limit/2) && !l.slow {
		l.slow = true
		w.log.Info("worker not ready yet", l.delay("boot_timeout", limit)...)
	}
	if age > limit {
		w.killFor(l, CauseBootTimeout)
	}
}

// killFor kills a process for a cause. live sees its end.
func (w *worker) killFor(l *child, cause Cause) {
	if l.killed {
		return
	}
	l.killed, l.killCause = true, cause
	if cause == CauseBootTimeout || cause == CauseAddressTaken {
		w.log.Warn("worker killed before it was ready", l.delay("cause", cause.String())...)
	}
	l.group.Kill()
}

// report tells the rank and the board what has changed.
func (w *worker) report(l *child) {
	able := l.judge.Serving && !l.stopped && !l.killed && !l.gone()
	switch {
	case able && !l.up:
		w.s.options.Rank.Up(w.name, l.endpoint.network, l.endpoint.address)
		w.s.everReady.Store(true)
		w.log.Info("worker ready", "pid", l.group, "address", l.endpoint.address, "after", time.Since(l.booted).Round(time.Millisecond).String())
		w.firstReady(l)
	case !able && l.up:
		w.s.options.Rank.Down(w.name)
		w.log.Warn("worker takes no calls", "pid", l.group, "stopped", l.stopped, "reason", l.trouble())
	}
	if able != l.up {
		l.up, l.toldOf, l.toldTurns = able, false, false
	}
	w.tellSuspicion(l)
	state, reason := l.state(w.looping(Starting)), ""
	if state != Ready && (l.welcomed || l.slow) {
		reason = l.trouble()
	}
	w.board.change(func(s *Status) {
		s.State, s.Reason = state, reason
		s.NoHealth = l.last.Said == health.NoService || l.last.Said == health.Library
	})
}

// firstReady does the work that is due when a process is ready for the first time.
func (w *worker) firstReady(l *child) {
	if l.welcomed {
		return
	}
	l.welcomed = true
	w.odometer.Store(newOdometer(l))
	w.warnIfExposed(l)
	w.hookAfterReady(l)
}

// tellSuspicion tells the rank and the log whether a worker that is up is suspect.
func (w *worker) tellSuspicion(l *child) {
	if !l.up {
		return
	}
	if silent := l.judge.IsSilent(); silent != l.toldOf {
		l.toldOf = silent
		w.s.options.Rank.Suspect(w.name, silent)
		if silent {
			told := append([]any{"pid", l.group}, l.judge.Told()...)
			w.log.Warn("worker is silent and gets no new calls", append(told, "reason", l.judge.Reason)...)
		} else {
			w.log.Info("worker speaks again", "pid", l.group)
		}
	}
	if turns := l.judge.TurnsAway(); turns != l.toldTurns {
		l.toldTurns = turns // the relay acts on it
		if turns {
			w.log.Warn("worker turns calls away and gets one only now and then", "pid", l.group, "reason", health.TurnsAway)
		} else {
			w.log.Info("worker takes calls again", "pid", l.group)
		}
	}
}

// activity is the present evidence of the data plane about the worker.
func (w *worker) activity() Work { return w.s.options.Activity.Activity(w.name) }

// rest waits before the next start and reports false if Stop or the end of the
// occupancy came first.
func (w *worker) rest(end ending) bool {
	wasLooping := w.backOff.looping
	wait := w.backOff.exited(time.Since(w.s.began), end.served, rand.Float64())
	state := w.looping(BackOff)
	w.board.change(func(s *Status) {
		s.State, s.PID, s.Started, s.LastExit, s.LastCause = state, 0, time.Time{}, end.how, end.cause
		s.Reason = ""
		s.Restarts[end.cause]++
		s.Ends[end.cause]++
	})
	told := []any{"cause", end.cause.String(), "how", end.how, "restart_in", wait.Round(time.Millisecond)}
	if end.hint != "" {
		told = append(told, "hint", end.hint)
	}
	w.log.Warn("worker ended", told...)
	if w.backOff.looping && !wasLooping {
		w.log.Error("worker in a crash loop: 5 exits within 60 s", "how", end.how)
	}
	over := time.After(wait)
	for {
		select {
		case <-over:
			return true
		case <-w.tick.C:
			w.showBeat()
		case <-w.occupancy.leave:
			return false
		case <-w.s.stopping:
			return false
		}
	}
}

// claimEndpoint claims the address for the next process.
func (w *worker) claimEndpoint() (endpoint, error) {
	at, err := w.s.addresses.claim(w.number, w.index)
	switch {
	case err != nil || at.index == w.index:
	case at.index == w.number:
		w.log.Info("port is free again", w.endpointAttrs(at)...)
	default:
		w.log.Warn("port is taken, using a spare one", append([]any{"taken", w.home()}, w.endpointAttrs(at)...)...)
	}
	if err == nil {
		w.index = at.index
	}
	at.worker, at.number, at.slots = w.name, w.number, w.s.options.Slots.Most()
	return at, err
}

// home names the worker's own ports, one of which is taken.
func (w *worker) home() string {
	port := w.s.options.StartPort + w.number
	if w.s.options.Transport == "unix" {
		return strconv.Itoa(port + metricsOffset)
	}
	return fmt.Sprintf("%d or %d", port, port+metricsOffset)
}

// endpointAttrs returns the log attributes of an address: with unix, the port of the metrics
// page.
func (w *worker) endpointAttrs(at endpoint) []any {
	if at.network == "unix" {
		return []any{"metrics_port", at.metricsPort}
	}
	return []any{"address", at.address, "metrics_port", at.metricsPort}
}

// awaitSpawn waits for the result of an exec. After the beginning of Stop it
// waits no longer than Stop does, and then returns process.ErrStopping.
func (w *worker) awaitSpawn(request *process.Spawning) error {
	stopping := w.s.stopping
	var giveUp <-chan time.Time
	for {
		select {
		case err := <-request.Result:
			return err
		case <-w.tick.C:
			w.showBeat()
		case <-stopping:
			stopping, giveUp = nil, time.After(w.s.settings().StopTimeout)
		case <-w.s.killing:
			request.Abandon()
			return process.ErrStopping
		case <-giveUp:
			request.Abandon()
			return process.ErrStopping
		}
	}
}

// looping returns CrashLoop while the worker is in a crash loop, else state.
func (w *worker) looping(state State) State {
	if w.backOff.looping {
		return CrashLoop
	}
	return state
}

// enter publishes a state.
func (w *worker) enter(state State) {
	w.board.change(func(s *Status) { s.State, s.Reason = state, "" })
}

func (w *worker) showBeat() { w.beat.Store(int64(time.Since(w.s.began))) }
