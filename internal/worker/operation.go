package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"
)

// operation is a replacement under way: of all workers (a roll), or of one.
//
// Shape: the foreman makes it and follows it at every change; it ends by end, and its
// callers get an answer.
// Concurrency: owned by the foreman, except for the channels and err.
type operation struct {
	reason  Reason
	first   uint64 // it has started the occupancies from this number on
	only    int    // the place that is replaced, everyPlace for all
	force   bool
	version *version
	began   time.Time

	most  int // the largest number of workers that existed or were wanted: it sets the time limit
	total int // occupancies to replace
	done  int // of these, the ones that have ended
	cut   int // calls of these that did not end in time
	step  string

	progress chan Progress // read by the waiting caller; a step that does not fit is left out
	over     chan struct{} // closed at the end, after progress
	err      error         // how it ended; like cut, to be read when one of the channels is closed
}

// everyPlace is operation.only of a roll.
const everyPlace = -1

// maxProgress is how many steps of an operation may wait to be told.
const maxProgress = 256

// ErrTakenOver is the error of a Roll that another Roll has replaced.
var ErrTakenOver = errors.New("another restart took over")

var errBusy = errors.New("workers are being replaced already, see cabrank status")

func (op *operation) isRoll() bool { return op.only == everyPlace }

// isRecycling reports whether cabrank itself has begun the operation.
func (op *operation) isRecycling() bool { return op.reason >= ReasonCalls }

// replaces reports whether the operation replaces the occupancy at a place.
func (op *operation) replaces(number int, t *occupancy) bool {
	return t.number < op.first && (op.isRoll() || op.only == number)
}

func (op *operation) tell(p Progress) {
	p.Done, p.Total = op.done, op.total
	op.step = p.String()
	select {
	case op.progress <- p:
	default:
	}
}

// tellCut tells at the end how many calls were cut, if any. Unlike a step, it is never
// left out.
func (op *operation) tellCut(tell func(Progress)) {
	if tell != nil && op.cut > 0 {
		tell(Progress{Step: StepCut, Done: op.done, Total: op.total, Cut: op.cut})
	}
}

// begin starts an operation.
func (f *foreman) begin(op *operation) {
	op.first = f.lastOccupancy + 1
	op.began = time.Now()
	op.most = len(f.occupancies)
	op.progress, op.over = make(chan Progress, maxProgress), make(chan struct{})
	f.op = op
	for number, t := range f.occupancies {
		t.wasReady = false
		if !t.retiring && op.replaces(number, t) {
			op.total++
		}
	}
	if op.force {
		f.hurry(op)
	}
	f.s.options.Logger.Info("replacing workers", "reason", op.reason.String(), "workers", op.total,
		"generation", op.version.generation, "force", op.force)
}

// hurry ends the wait for the calls of the workers that an operation replaces.
func (f *foreman) hurry(op *operation) {
	op.force = true
	for number, t := range f.occupancies {
		if t.retiring && !t.hurried && op.replaces(number, t) {
			t.hurried = true
			close(t.hurry)
		}
	}
}

// follow notes the progress of the operation, and gives it up if it makes none.
func (f *foreman) follow(places []place) {
	op := f.op
	if op == nil {
		return
	}
	op.most = max(op.most, f.wanted)
	if limit := f.s.rollLimit(op.most); time.Since(op.began) > limit {
		f.fail(fmt.Errorf("not all are replaced after %v, which is given up: %s", limit, f.waitsFor(places)))
		return
	}
	left, ended := 0, 0
	for _, s := range places {
		t := f.occupancies[s.number]
		switch {
		case t == nil:
		case op.replaces(s.number, t):
			left++
		case s.isNew:
			if s.ready && !t.wasReady {
				t.wasReady = true
				op.tell(Progress{Step: StepReady, Worker: f.s.workerAt(s.number).name})
			}
			n, noUse, how := f.troubles(s.number, t)
			if ended += n; n > 0 && ended >= maxRollEnds || noUse && !t.wasReady {
				f.fail(f.notReady(s.number, how))
				return
			}
		}
	}
	if done := op.total - left; done > op.done {
		op.done = done
		op.tell(Progress{Step: StepEnded})
	}
}

// troubles returns how many processes of an occupancy have ended by themselves, how the
// last one did, and whether another one would not help either: because the last was not
// ready in time or could not be made.
func (f *foreman) troubles(number int, t *occupancy) (n int, noUse bool, how string) {
	status := f.s.workerAt(number).board.read()
	if n = ends(status) - t.ended; n == 0 {
		return 0, false, ""
	}
	noUse = status.LastCause == CauseBootTimeout || status.LastCause == CauseExecFailed
	return n, noUse, fmt.Sprintf("%s (%s)", status.LastCause, status.LastExit)
}

// notReady is the error when the spare worker of an operation does not get ready.
func (f *foreman) notReady(number int, how string) error {
	spare := f.s.workerAt(number).name
	if f.op.isRoll() {
		return fmt.Errorf("the new workers do not get ready, the others go on: %s: %s", spare, how)
	}
	return fmt.Errorf("the spare worker does not get ready, %s goes on: %s: %s", f.s.workerAt(f.op.only).name, spare, how)
}

// waitsFor names the places that an operation waits for, with their states.
func (f *foreman) waitsFor(places []place) string {
	var names []string
	for _, s := range places {
		if s.occupancy != 0 && (s.outdated || !s.ready) {
			w := f.s.workerAt(s.number)
			names = append(names, w.name+" is "+w.board.read().State.String())
		}
	}
	return strings.Join(names, ", ")
}

// fail gives the operation up: workers that serve go on, new ones that do not yet are
// ended.
func (f *foreman) fail(why error) {
	op := f.op
	for _, t := range f.occupancies {
		if t.number >= op.first && !t.retiring && !t.wasReady {
			t.failedUpdate = true
		}
	}
	f.s.options.Logger.Error("replacing workers stopped", "reason", op.reason.String(), "replaced", op.done, "of", op.total, "calls_cut", op.cut, "error", why)
	f.end(why)
}

// finish ends an operation that has nothing left to do.
func (f *foreman) finish(p plan, places []place) {
	if f.op == nil || !p.settled(places) {
		return
	}
	if f.op.isRoll() {
		f.good = f.op.version
	}
	level := slog.LevelInfo
	if f.op.cut > 0 {
		level = slog.LevelWarn
	}
	f.s.options.Logger.Log(context.Background(), level, "workers replaced", "reason", f.op.reason.String(), "workers", f.op.total,
		"took", time.Since(f.op.began).Round(time.Millisecond).String(), "calls_cut", f.op.cut)
	f.op.done = f.op.total
	f.end(nil)
}

// giveUp ends the operation but not the processes that it has started.
func (f *foreman) giveUp(why error) {
	if f.op != nil {
		f.end(why)
	}
}

// end ends the operation. answer tells its callers once the overview is published.
func (f *foreman) end(err error) {
	op := f.op
	f.op = nil
	f.last = Outcome{Operation: op.reason.String(), Done: op.done, Total: op.total, Cut: op.cut, Began: op.began, Ended: time.Now()}
	if err != nil {
		f.last.Error = err.Error()
	}
	f.recycled(op.reason, err)
	op.err = err
	f.over = append(f.over, op)
}

// answer tells callers that their operations have ended.
func (f *foreman) answer() {
	for _, op := range f.over {
		close(op.progress)
		close(op.over)
	}
	f.over = nil
}
