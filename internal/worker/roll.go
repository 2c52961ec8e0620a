package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cabrank/cabrank/internal/process"
)

const (
	// rollSlack is the time that a roll may take for itself: for starts, and until it
	// sees a change.
	rollSlack = 5 * time.Second
	// hookSlack is the time that a hook may take beyond its limit, see hookRunner.start.
	hookSlack = 3 * time.Second
)

// Step is what happens in a replacement.
type Step string

// The steps of a replacement, in the order in which a worker goes through them.
const (
	StepStart Step = "starting"
	StepReady Step = "ready"
	StepDrain Step = "draining"
	StepEnded Step = "ended"
	StepCut   Step = "cut" // told once at the end, for all workers, if Progress.Cut is not 0
)

// Progress is one step of a replacement, for people who wait.
type Progress struct {
	Step   Step
	Worker string // empty at StepEnded and StepCut
	Note   string // the calls that it waits for
	Done   int    // workers replaced, and their old processes gone
	Total  int    // workers to replace
	Cut    int    // calls that did not end in time and were cut
}

// String returns one line, "draining worker-2 (3 calls)".
func (p Progress) String() string {
	switch {
	case p.Step == StepCut:
		return fmt.Sprintf("%d calls cut", p.Cut)
	case p.Worker == "":
		return fmt.Sprintf("%d of %d replaced", p.Done, p.Total)
	case p.Note == "":
		return fmt.Sprintf("%s %s", p.Step, p.Worker)
	}
	return fmt.Sprintf("%s %s (%s)", p.Step, p.Worker, p.Note)
}

// Change says what a roll changes.
type Change struct {
	Command []string // the new command of all workers; nil: as configured
	Force   bool     // calls are not waited for: they are cut at once
}

// Overview is the state of all workers together, and of the present operation.
type Overview struct {
	Wanted     int       // workers
	Generation int       // the newest
	Settled    bool      // as many workers as wanted, and none is booting in a replacement
	Operation  string    // a Reason while workers are being replaced, else empty
	Done       int       // of Total
	Total      int       // workers to replace
	Step       string    // the last Progress
	Began      time.Time // of Operation
	Cut        int       // calls of Operation that did not end in time and were cut
	Last       Outcome   // of the last operation; the zero value before the first
}

// Outcome is how a replacement of workers ended.
type Outcome struct {
	Operation    string // a Reason
	Error        string // why it was given up; empty if all were replaced
	Done, Total  int    // workers
	Cut          int    // calls that did not end in time and were cut
	Began, Ended time.Time
}

// Overview returns the present overview.
func (s *Supervisor) Overview() Overview { return *s.overview.Load() }

// Wanted is the wanted number of workers.
func (s *Supervisor) Wanted() int { return s.Overview().Wanted }

// Roll replaces all workers by new ones with the present options, a few at a time: a
// spare one becomes ready, then an old one drains and ends. It returns when all are
// replaced and the old ones gone. tell is called for each step, from this goroutine,
// and at the end if calls were cut; nil is allowed.
//
// Errors: the new workers do not become ready (then the old ones go on), another
// roll took over, Freeze or Stop came, or ctx ended; only in the last case the roll goes
// on. A roll that comes while another replacement is under way replaces it; with Force
// it also ends the drains that are under way.
func (s *Supervisor) Roll(ctx context.Context, change Change, tell func(Progress)) error {
	if change.Command != nil {
		o := *s.settings()
		o.Command = slices.Clone(change.Command)
		s.Configure(o)
	}
	return s.operate(ctx, tell, func(f *foreman) (*operation, error) {
		f.giveUp(ErrTakenOver)
		f.generation++
		return &operation{
			reason: ReasonRoll, only: everyPlace, force: change.Force,
			version: &version{f.generation, s.settings()},
		}, nil
	})
}

// Replace replaces one worker by a new one of the same kind: the spare one starts
// first, as in Roll. The error is one of Roll's, or that the worker does not exist, or
// that another requested replacement is under way; recycling is waited for. With force,
// a replacement of the same worker that is under way is joined, and no longer waits for
// calls.
func (s *Supervisor) Replace(ctx context.Context, worker string, force bool, tell func(Progress)) error {
	for {
		var other *operation // the operation to wait for
		err := s.operate(ctx, tell, func(f *foreman) (*operation, error) {
			op := f.op
			if op == nil {
				return f.replacement(worker, force)
			}
			hurry := force && s.isOf(op, worker)
			if hurry {
				f.hurry(op)
			}
			if hurry || op.isRecycling() {
				other = op
			}
			return nil, errBusy
		})
		if other == nil {
			return err
		}
		select {
		case <-other.over:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if s.isOf(other, worker) && (other.err == nil || !other.isRecycling()) {
			other.tellCut(tell)
			return other.err // the worker is replaced
		}
	}
}

// isOf reports whether an operation replaces this one worker.
func (s *Supervisor) isOf(op *operation, worker string) bool {
	return !op.isRoll() && s.workerAt(op.only).name == worker
}

// replacement returns an operation that replaces one worker.
func (f *foreman) replacement(worker string, force bool) (*operation, error) {
	for number, t := range f.occupancies {
		switch {
		case f.s.workerAt(number).name != worker:
		case t.retiring:
			return nil, fmt.Errorf("%s is ending already", worker)
		default:
			return &operation{reason: ReasonDrain, only: number, force: force, version: f.good}, nil
		}
	}
	return nil, fmt.Errorf("there is no worker %q", worker)
}

// operate hands the foreman an operation and waits for its end.
func (s *Supervisor) operate(ctx context.Context, tell func(Progress), prepare func(*foreman) (*operation, error)) error {
	var op *operation
	var refused error
	err := s.order(ctx, func(f *foreman) {
		if f.frozen {
			refused = process.ErrStopping
			return
		}
		if op, refused = prepare(f); refused == nil {
			f.begin(op)
		}
	})
	if err := errors.Join(err, refused); err != nil {
		return err
	}
	for {
		select {
		case p, more := <-op.progress:
			switch {
			case !more:
				op.tellCut(tell)
				return op.err
			case tell != nil:
				tell(p)
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// order lets the foreman run do, and waits until it has.
func (s *Supervisor) order(ctx context.Context, do func(*foreman)) error {
	done := make(chan struct{})
	select {
	case s.orders <- func(f *foreman) { do(f); close(done) }:
		<-done
		return nil
	case <-s.stopping:
		return process.ErrStopping
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Scale changes the wanted number of workers. It returns at once; Overview tells how
// workers come and go.
func (s *Supervisor) Scale(n int) error {
	o := s.settings()
	most := min(maxPlaces-o.MaxSurge, maxPort-metricsOffset-o.StartPort+1-o.MaxSurge)
	least := max(1, o.MinReady)
	if o.MaxSurge == 0 {
		least = o.MinReady + 1 // one has to go before another one comes
	}
	if n < least || n > most {
		return fmt.Errorf("there can be %d to %d workers, not %d (min_ready is %d, max_surge %d)", least, most, n, o.MinReady, o.MaxSurge)
	}
	return s.order(context.Background(), func(f *foreman) {
		if f.wanted != n {
			s.options.Logger.Info("scaling", "from", f.wanted, "to", n)
		}
		f.wanted = n
		f.show(f.look()) // a caller that reads it at once finds the new number
	})
}

// RollLimit is the longest time that a roll begun now can take: all its boots and
// drains one after the other. A roll that takes longer is given up.
func (s *Supervisor) RollLimit() time.Duration {
	return s.rollLimit(max(s.Wanted(), s.occupied()))
}

// rollLimit is RollLimit for a number of workers.
func (s *Supervisor) rollLimit(workers int) time.Duration {
	o := s.settings()
	return inTurn(workers, o.plan(s.Wanted()).atOnce(), o.entering()+o.leaving()) + rollSlack
}

// ReplaceLimit is the longest time that the replacement of one worker can take.
func (s *Supervisor) ReplaceLimit() time.Duration {
	o := s.settings()
	return o.entering() + o.leaving()
}

// ScaleLimit is the longest time that it can take until exactly n workers run: new ones
// boot together, others leave one after the other. A replacement under way adds its
// time.
func (s *Supervisor) ScaleLimit(n int) time.Duration {
	o := s.settings()
	limit := o.entering() + inTurn(max(0, s.occupied()-n), maxDraining, o.leaving())
	if s.Overview().Operation != "" {
		limit += s.rollLimit(max(n, s.occupied()))
	}
	return limit
}

// occupied is how many places have a worker.
func (s *Supervisor) occupied() (n int) {
	for _, w := range s.allWorkers() {
		if w.board.read().State != Vacant {
			n++
		}
	}
	return n
}

// inTurn is the time that n workers take in turn if each takes each, at most atOnce of
// them together.
func inTurn(n, atOnce int, each time.Duration) time.Duration {
	atOnce = max(1, atOnce)
	return each * time.Duration((n+atOnce-1)/atOnce)
}

// entering is the time that a worker may take until it serves, with its hook.
func (o *Options) entering() time.Duration {
	if len(o.Hooks.BeforeStart) > 0 {
		return o.BootTimeout + hookSlack + o.BootTimeout
	}
	return o.BootTimeout
}

// leaving is the time that a worker may take to drain and end, with its hook.
func (o *Options) leaving() time.Duration {
	limit := o.DrainTimeout + cutLimit + o.StopTimeout + process.KillLimit
	if len(o.Hooks.BeforeStop) > 0 {
		limit += o.BootTimeout + hookSlack
	}
	return limit
}
