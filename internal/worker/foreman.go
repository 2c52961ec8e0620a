package worker

import (
	"fmt"
	"time"

	"github.com/cabrank/cabrank/internal/process"
)

// foremanTick is how often the foreman looks around without an event: recycling by age
// and memory has none.
const foremanTick = time.Second

// maxRollEnds is how many processes of a replacement may end by themselves
// before it is given up.
const maxRollEnds = 3

// foreman decides which places have a process: it starts and retires occupancies as
// the plan says, and carries out one operation (a roll, a replacement) at a
// time.
//
// Concurrency: everything belongs to the goroutine of run. Others hand it
// functions through Supervisor.orders, and read what show publishes.
type foreman struct {
	s             *Supervisor
	wanted        int
	occupancies   map[int]*occupancy // by number of the place
	lastOccupancy uint64
	generation    int      // the newest
	good          *version // the version of new processes outside an operation
	op            *operation
	outage        bool // the last value of Registry.Outage
	frozen        bool // no operation begins any more
	recycling     recycling
	last          Outcome      // of the last operation
	over          []*operation // operations that have ended and are not answered yet
}

// version is the options of the processes of one generation.
type version struct {
	generation int
	options    *Options
}

// occupancy is the use of a place by processes of one version, one after the other, from
// the start of the first to the end of the last. The foreman makes it, and the goroutine
// of worker.run carries it out.
type occupancy struct {
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
	retiring     bool
	hurried      bool
	failedUpdate bool
	wasReady     bool
}

func newForeman(s *Supervisor) *foreman {
	settings := s.settings()
	f := &foreman{s: s, wanted: settings.Count.N, occupancies: make(map[int]*occupancy), generation: 1}
	f.good = &version{1, settings}
	f.show(nil)
	return f
}

// run is the foreman's goroutine. It ends with Stop.
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
			f.giveUp(process.ErrStopping)
		case <-f.s.stopping:
			f.giveUp(process.ErrStopping)
			f.answer()
			return
		}
	}
}

// work does all that is due now.
func (f *foreman) work() {
	places, op := f.look(), f.op
	if f.follow(places); f.op != op {
		places = f.look() // the new processes of a failed operation have to go
	}
	p := f.plan()
	due := p.next(places)
	for _, number := range due.retire {
		f.retire(number)
	}
	for _, number := range due.start {
		f.start(number, nil)
	}
	if len(due.start)+len(due.retire) > 0 {
		places = f.look()
	}
	f.finish(p, places)
	f.recycle(p, places)
	f.show(places)
	if all := outage(places); all != f.outage {
		f.outage = all
		f.s.options.Rank.Outage(all)
	}
	f.answer()
}

func (f *foreman) plan() plan { return f.s.settings().plan(f.wanted) }

// plan returns the plan for wanted workers.
func (o *Options) plan(wanted int) plan {
	return plan{wanted: wanted, surge: o.MaxSurge, draining: maxDraining, minReady: o.MinReady}
}

// look reads the state of all places.
func (f *foreman) look() []place {
	workers := f.s.allWorkers()
	places := make([]place, len(workers))
	for number, w := range workers {
		places[number] = f.placeOf(number, w.board.read())
	}
	return places
}

// placeOf returns one place as the plan sees it.
func (f *foreman) placeOf(number int, status Status) place {
	s := place{number: number}
	t := f.occupancies[number]
	if t != nil && status.State == Vacant {
		f.leave(number, t)
		t = nil
	}
	if t == nil {
		return s
	}
	s.occupancy, s.retiring = t.number, t.retiring
	s.ready = status.State == Ready && !t.retiring
	s.looping = status.State == CrashLoop
	s.lost = status.State == BackOff || s.looping
	s.ofFailedUpdate = t.version.generation > f.good.generation && f.op == nil
	if s.ofFailedUpdate && s.lost && !t.retiring {
		t.failedUpdate = true // its successor runs the version before
	}
	s.failedUpdate = t.failedUpdate
	if f.op != nil {
		s.isNew = t.number >= f.op.first
		s.outdated = f.op.replaces(number, t)
	}
	return s
}

// leave removes an occupancy that has ended.
func (f *foreman) leave(number int, t *occupancy) {
	delete(f.occupancies, number)
	if f.op != nil && f.op.replaces(number, t) {
		f.op.cut += t.cut
	}
}

// start gives a vacant place to a new occupancy. first gets the result of the first exec.
func (f *foreman) start(number int, first chan<- error) {
	w := f.s.workerAt(number)
	v := f.good
	if f.op != nil {
		v = f.op.version
		f.op.tell(Progress{Step: StepStart, Worker: w.name})
	}
	f.lastOccupancy++
	t := &occupancy{number: f.lastOccupancy, version: v, leave: make(chan struct{}), hurry: make(chan struct{})}
	t.ended = ends(w.board.read())
	f.occupancies[number] = t
	w.occupy(t)
	f.s.running.Go(func() { w.run(t, first) })
}

// retire ends an occupancy.
func (f *foreman) retire(number int) {
	t, w := f.occupancies[number], f.s.workerAt(number)
	t.retiring, t.reason = true, ReasonScale
	switch {
	case t.failedUpdate:
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
func (f *foreman) show(places []place) {
	o := Overview{Wanted: f.wanted, Generation: f.generation, Last: f.last}
	o.Settled = f.op == nil && f.plan().settled(places)
	if op := f.op; op != nil {
		o.Operation, o.Done, o.Total, o.Step, o.Began, o.Cut = op.reason.String(), op.done, op.total, op.step, op.began, op.cut
	}
	f.s.overview.Store(&o)
}
