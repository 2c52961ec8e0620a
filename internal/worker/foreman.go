package worker

import (
	"fmt"
	"time"
)

// foremanTick is how often the foreman looks around without an event: recycling by age
// and memory has none.
const foremanTick = time.Second

// maxRollEnds is how many processes of a replacement may end by themselves
// before it is given up.
const maxRollEnds = 3

// foreman decides which places have a process: it starts and retires tenures as
// the plan says, and carries out one operation (a roll, a replacement) at a
// time.
//
// Concurrency: everything belongs to the goroutine of run. Others hand it
// functions through Supervisor.orders, and read what show publishes.
type foreman struct {
	s          *Supervisor
	wanted     int
	tenures    map[int]*tenure // by number of the place
	lastTenure uint64
	generation int      // the newest
	good       *version // the version of new processes outside an operation
	op         *operation
	outage     bool // the last value of Registry.Outage
	frozen     bool // no operation begins any more
	recycling  recycling
	last       Outcome      // of the last operation
	over       []*operation // operations that have ended and are not answered yet
}

// version is the options of the processes of one generation.
type version struct {
	generation int
	options    *Options
}

// tenure is the use of a place by processes of one version, one after the other, from
// the start of the first to the end of the last. The foreman makes it, and the goroutine
// of worker.run carries it out.
type tenure struct {
	// Set when it is made.
	number  uint64
	version *version
	ended   int // ends of processes of the place before it, Status.Restarts

	// Set by the foreman before it closes leave.
	reason Reason
	force  bool
	leave  chan struct{}

	// Closed by the foreman when its calls are not waited for any more.
	hurry chan struct{}

	// Set by the goroutine of worker.run before the place is vacant.
	cut int // calls that did not end in time and were cut

	// Owned by the foreman.
	retiring bool
	hurried  bool
	hopeless bool
	wasReady bool
}

func newForeman(s *Supervisor) *foreman {
	settings := s.settings()
	f := &foreman{s: s, wanted: settings.Count, tenures: make(map[int]*tenure), generation: 1}
	f.good = &version{1, settings}
	f.show(nil)
	return f
}

// run is the foreman's life. It ends with Stop.
func (f *foreman) run() {
	tick := time.NewTicker(foremanTick)
	defer tick.Stop()
	defer f.s.beat.Store(noBeat)
	freeze := f.s.frozen
	for {
		f.s.beat.Store(int64(time.Since(f.s.began)))
		f.work()
		select {
		case order := <-f.s.orders:
			order(f)
		case <-f.s.nudge:
		case <-tick.C:
		case <-freeze:
			freeze, f.frozen = nil, true
			f.giveUp(errStopping)
		case <-f.s.stopping:
			f.giveUp(errStopping)
			f.answer()
			return
		}
	}
}

// work does all that is due now.
func (f *foreman) work() {
	seats, op := f.look(), f.op
	if f.follow(seats); f.op != op {
		seats = f.look() // the new processes of a failed operation have to go
	}
	p := f.plan()
	due := p.next(seats)
	for _, number := range due.retire {
		f.retire(number)
	}
	for _, number := range due.start {
		f.start(number, nil)
	}
	if len(due.start)+len(due.retire) > 0 {
		seats = f.look()
	}
	f.finish(p, seats)
	f.recycle(p, seats)
	f.show(seats)
	if all := outage(seats); all != f.outage {
		f.outage = all
		f.s.options.Rank.Outage(all)
	}
	f.answer()
}

func (f *foreman) plan() plan { return f.s.settings().plan(f.wanted) }

// plan returns the plan for wanted workers.
func (o *Options) plan(wanted int) plan {
	return plan{wanted: wanted, surge: o.MaxSurge, draining: o.MaxDraining, minReady: o.MinReady}
}

// look reads the state of all places.
func (f *foreman) look() []seat {
	workers := f.s.places()
	seats := make([]seat, len(workers))
	for number, w := range workers {
		seats[number] = f.seat(number, w.board.read())
	}
	return seats
}

// seat returns one place as the plan sees it.
func (f *foreman) seat(number int, status Status) seat {
	s := seat{number: number}
	t := f.tenures[number]
	if t != nil && status.State == Vacant {
		f.leave(number, t)
		t = nil
	}
	if t == nil {
		return s
	}
	s.tenure, s.retiring = t.number, t.retiring
	s.ready = status.State == Ready && !t.retiring
	s.looping = status.State == CrashLoop
	s.lost = status.State == BackOff || s.looping
	s.doubtful = t.version.generation > f.good.generation && f.op == nil
	if s.doubtful && s.lost && !t.retiring {
		t.hopeless = true // its successor runs the version before
	}
	s.hopeless = t.hopeless
	if f.op != nil {
		s.young = t.number >= f.op.first
		s.stale = f.op.replaces(number, t)
	}
	return s
}

// leave removes a tenure that has ended.
func (f *foreman) leave(number int, t *tenure) {
	delete(f.tenures, number)
	if f.op != nil && f.op.replaces(number, t) {
		f.op.cut += t.cut
	}
}

// start gives a vacant place to a new tenure. first gets the result of the first exec.
func (f *foreman) start(number int, first chan<- error) {
	w := f.s.place(number)
	v := f.good
	if f.op != nil {
		v = f.op.version
		f.op.tell(Progress{Step: StepStart, Worker: w.name})
	}
	f.lastTenure++
	t := &tenure{number: f.lastTenure, version: v, leave: make(chan struct{}), hurry: make(chan struct{})}
	t.ended = ends(w.board.read())
	f.tenures[number] = t
	w.occupy(t)
	f.s.running.Go(func() { w.run(t, first) })
}

// retire ends a tenure.
func (f *foreman) retire(number int) {
	t, w := f.tenures[number], f.s.place(number)
	t.retiring, t.reason = true, ReasonScale
	switch {
	case t.hopeless:
		t.reason, t.force = ReasonFailed, true
	case f.op != nil && f.op.replaces(number, t):
		t.reason, t.force = f.op.reason, f.op.force
		f.op.tell(Progress{Step: StepDrain, Worker: w.name, Note: inFlightNote(w.activity().InFlight)})
	}
	close(t.leave)
}

func inFlightNote(calls int) string {
	switch calls {
	case 0:
		return "no calls"
	case 1:
		return "1 call"
	}
	return fmt.Sprintf("%d calls", calls)
}

// ends is how many processes of a place have ended by themselves.
func ends(status Status) (n int) {
	for _, times := range status.Restarts {
		n += times
	}
	return n
}

// show publishes the overview.
func (f *foreman) show(seats []seat) {
	o := Overview{Wanted: f.wanted, Generation: f.generation, Last: f.last}
	o.Settled = f.op == nil && f.plan().settled(seats)
	if op := f.op; op != nil {
		o.Operation, o.Done, o.Total, o.Step, o.Began, o.Cut = op.reason.String(), op.done, op.total, op.step, op.began, op.cut
	}
	f.s.overview.Store(&o)
}
