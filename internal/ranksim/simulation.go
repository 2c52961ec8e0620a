package ranksim

import (
	"slices"
	"strconv"
	"time"

	"github.com/cabrank/cabrank/internal/rank"
)

// Run sends the calls, which are in the order of their arrival, through a system and
// returns the result; calls of loops come as they are made, and follow the others in the
// result. Run ends when all calls and all handlers have ended.
func Run(s System, calls []Call, loops ...Loop) *Result {
	sim := newSimulation(s, calls)
	sim.admitLoops(loops)
	for sim.step() {
		sim.settle()
		for ; s.Look != nil && sim.looked <= sim.now; sim.looked += time.Second / 10 {
			s.Look(sim.rank, sim.now)
		}
	}
	return sim.r
}

// simulation is one run of a system.
type simulation struct {
	System

	r           *Result
	rank        *rank.Rank
	workers     []worker
	methods     []*rank.Method
	accounts    []*rank.Account
	now, looked time.Duration
	drawn       int       // calls that do not come from a loop
	arrived     int       // drawn calls that have come
	loopers     []*looper // callers in loops
	by          []*looper // the callers of the calls after the drawn ones
	events      events
	tick        time.Duration // when the rank wants its next Tick; 0: never
	notices     []rank.Notice // scratch
	told        []*visit      // visits whose notices are not heard yet
	hearing     []*visit      // memory for the next ones
	visits      []*visit      // memory for further use
	runs        []*run        // the same
	alive       int           // calls and handlers that have not ended
}

func newSimulation(s System, calls []Call) *simulation {
	sim := &simulation{System: s, r: newResult(calls), drawn: len(calls)}
	sim.rank = rank.New(sim.Rank)
	for i, terms := range s.Accounts {
		sim.accounts = append(sim.accounts, sim.rank.Open("caller-"+strconv.Itoa(i+1), terms))
	}
	sim.workers = make([]worker, len(s.Workers))
	for i := range sim.workers {
		w := &sim.workers[i]
		w.Worker = s.Workers[i]
		w.endpoint = sim.rank.Add("worker-"+strconv.Itoa(i+1), rank.EndpointOptions{
			Slots: w.Slots, Least: w.Least, Most: w.Most, OnCancel: w.OnCancel,
		})
		sim.deliver(sim.rank.SetReady(w.endpoint, true, 0, nil))
		sim.breakdown(w)
	}
	return sim
}

// step moves to the next instant with an event, and handles the event. At the same
// instant handlers end before calls arrive. It returns false without events.
func (s *simulation) step() bool {
	next := s.events.next()
	arrival := forever
	if s.arrived < s.drawn {
		arrival = s.r.Calls[s.arrived].Arrives
	}
	switch {
	case s.tick != 0 && s.tick <= next && s.tick <= arrival:
		if s.alive == 0 && s.arrived == s.drawn {
			return false // no call is left for the rank
		}
		s.now = max(s.tick, s.now)
		s.lookAfter()
	case next == forever && arrival == forever:
		return false
	case next <= arrival:
		e := s.events.pop()
		s.now = e.at
		s.happens(e)
	default:
		s.now = arrival
		s.arrived++
		s.arrive(s.arrived - 1)
	}
	return true
}

// settle delivers the rank's notices, as shards do between two calls, and
// calls Tick if the rank asks for it.
func (s *simulation) settle() {
	for {
		told := s.told
		s.told = s.hearing[:0] // notices that follow are heard in the next round
		for _, v := range told {
			v.hear()
		}
		s.hearing = told
		select {
		case <-s.rank.Wake():
			s.lookAfter()
		default:
		}
		if len(s.told) == 0 {
			return
		}
	}
}

// lookAfter calls Tick, like the relay's goroutine for the rank.
func (s *simulation) lookAfter() {
	notices, next := s.rank.Tick(s.now, s.notices[:0])
	s.tick = next
	s.deliver(notices)
}

// deliver delivers notices; the calls hear them in settle.
func (s *simulation) deliver(notices []rank.Notice) {
	for i := range notices {
		notices[i].Deliver()
		notices[i] = rank.Notice{}
	}
	s.notices = notices[:0]
}

// happens handles an event, unless its subject has ended meanwhile.
func (s *simulation) happens(e event) {
	switch e.what {
	case answers:
		if e.run.uses != e.uses {
			break
		}
		if at := e.run.resumes(s.now); at > s.now {
			s.events.add(event{at: at, what: answers, run: e.run, uses: e.uses})
		} else {
			s.answer(e.run)
		}
	case comes:
		s.arrive(e.call)
	case fails:
		s.fail(e.worker, e.killed)
	case recovers:
		s.recover(e.worker, e.killed)
	case frees:
		s.free(e.run)
	case refuses:
		if e.visit.uses == e.uses {
			e.visit.refusedByWorker()
		}
	case gives:
		if e.visit.uses == e.uses && e.visit.alarm == e.at {
			e.visit.giveUp()
		}
	case hedges:
		if e.visit.uses == e.uses && e.visit.hedgeAt == e.at && s.rank.Waiting() == 0 {
			e.visit.tryAgain()
		}
	}
}

// start begins the handler of an attempt at a worker. It returns nil if the worker has no
// free thread and refuses.
func (s *simulation) start(t *try, w *worker) *run {
	if w.busy == w.threads() && !w.Queues {
		return nil
	}
	r := s.newRun()
	r.worker, r.try, r.call = w, t, t.visit.call
	r.hedge = t == &t.visit.hedge
	if w.busy == w.threads() {
		w.queue = append(w.queue, r)
	} else {
		s.begin(r)
	}
	return r
}

// begin gives a run a thread.
func (s *simulation) begin(r *run) {
	r.begun, r.began = true, s.now
	r.worker.busy++
	r.worker.running = append(r.worker.running, r)
	rec := &s.r.Records[r.call]
	rec.Starts++
	if rec.Starts == 1 {
		rec.Wait = s.now - s.r.Calls[r.call].Arrives
	}
	s.events.add(event{
		at: s.now + r.worker.takes(&s.r.Calls[r.call], s.now), what: answers, run: r, uses: r.uses,
	})
}

// answer ends a handler.
func (s *simulation) answer(r *run) {
	t := r.try
	s.stop(r)
	if t != nil {
		t.visit.answered(t)
	}
}

// stop ends a handler's work; its thread may be free a little later.
func (s *simulation) stop(r *run) {
	s.r.Records[r.call].Held += s.now - r.began
	if r.hedge {
		s.r.HedgeTime += s.now - r.began
	}
	w := r.worker
	w.running = slices.DeleteFunc(w.running, func(x *run) bool { return x == r })
	r.try = nil
	r.uses++ // its answer does not count any more
	if r.worker.Late > 0 {
		s.events.add(event{at: s.now + r.worker.Late, what: frees, run: r})
	} else {
		s.free(r)
	}
}

// cancel tells the worker that the caller of a run has gone (R5).
func (s *simulation) cancel(r *run) {
	r.try = nil
	if r.begun && !r.worker.RunsOn {
		s.stop(r)
	}
}

// free gives the thread of a run that has ended to the next one inside the
// worker.
func (s *simulation) free(r *run) {
	w := r.worker
	w.busy--
	s.recycleRun(r)
	for len(w.queue) > 0 && w.busy < w.threads() {
		next := w.queue[0]
		w.queue = w.queue[1:]
		if next.try == nil && !w.RunsOn {
			s.recycleRun(next) // cancelled before it began
			continue
		}
		s.begin(next)
	}
}

func (s *simulation) newRun() *run {
	s.alive++
	if n := len(s.runs); n > 0 {
		r := s.runs[n-1]
		s.runs = s.runs[:n-1]
		*r = run{uses: r.uses}
		return r
	}
	return &run{}
}

func (s *simulation) recycleRun(r *run) {
	s.alive--
	r.uses++
	s.runs = append(s.runs, r)
}
