package service

import (
	"io/fs"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cabrank/cabrank/internal/admin"
	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/relay"
	"github.com/cabrank/cabrank/internal/scale"
	"github.com/cabrank/cabrank/internal/worker"
)

const (
	// scaleEvery is how often the load is looked at.
	scaleEvery = 250 * time.Millisecond
	// limitToldEvery is how often the log says at most that more workers would be
	// needed than there may be, for one reason.
	limitToldEvery = 10 * time.Minute
)

// fleet is what adapts the number of workers: worker.Supervisor.
type fleet interface {
	Scale(n int) error
	Wanted() int
	Workers() []worker.Status
}

// loadTeller tells the load: relay.Relay.
type loadTeller interface {
	Load() relay.Load
	Rank() rank.Snapshot
}

// autoscale keeps as many workers as the calls need (workers: MIN-MAX). It
// gathers what package scale decides by, and does what that says.
//
// Concurrency: all methods may be called from anywhere. Lock order: acting, then
// mu; neither the fleet nor the traffic is called under mu.
type autoscale struct {
	// Never changed.
	fleet   fleet
	traffic loadTeller
	log     *slog.Logger
	began   time.Time

	acting  sync.Mutex // held while the number is decided and changed; guards the next two
	machine machine
	boots   boots

	seen atomic.Pointer[measured]

	mu     sync.Mutex // guards the rest
	on     bool       // the number adapts at all
	held   int        // by hand; 0: it is not
	bounds scale.Options
	scaler *scale.Scaler
	last   scale.Decision
	counts map[scale.Reason]uint64
	toldAt map[scale.Reason]time.Duration
	begun  bool // a decision has been made
}

// newAutoscale makes one for the fleet of a service. root is where /proc and /sys
// are.
func newAutoscale(w worker.Settings, fleet fleet, traffic loadTeller, root fs.FS, log *slog.Logger) *autoscale {
	a := &autoscale{
		fleet: fleet, traffic: traffic, log: log, began: time.Now(),
		machine: newMachine(root), boots: newBoots(),
		scaler: scale.New(scale.Options{Min: 1, Max: w.Count.N}, w.Count.N, w.Slots.N),
		counts: make(map[scale.Reason]uint64), toldAt: make(map[scale.Reason]time.Duration),
	}
	a.configure(w)
	return a
}

// configure takes other bounds, or ceases to adapt the number at all. What is
// held by hand stays so.
func (a *autoscale) configure(w worker.Settings) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.on = w.Count.Adapts()
	if !a.on {
		a.held = 0
		return
	}
	a.bounds = scale.Options{Min: w.Count.Min, Max: w.Count.Max}
	if a.held == 0 {
		a.scaler.Bound(a.bounds)
	}
}

// Hold has n workers from now on, whatever the calls need (cabrank scale N). The
// error is the fleet's.
func (a *autoscale) Hold(n int) error {
	a.acting.Lock()
	defer a.acting.Unlock()
	if err := a.fleet.Scale(n); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.on {
		a.held = n
		a.scaler.Bound(scale.Options{Min: n, Max: n}) // it goes on watching the load
	}
	return nil
}

// Follow has the number of workers adapt again (cabrank scale auto); false if it
// never does.
func (a *autoscale) Follow() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.on {
		a.held = 0
		a.scaler.Bound(a.bounds)
	}
	return a.on
}

// State tells what adapts the number of workers; nil if nothing does.
func (a *autoscale) State() *admin.Scaling {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.on {
		return nil
	}
	state := &admin.Scaling{Min: a.bounds.Min, Max: a.bounds.Max, Held: a.held > 0}
	if a.held == 0 && a.last.Reason != scale.Enough {
		state.Reason = a.last.Words
	}
	return state
}

// sample is what the metrics page shows.
func (a *autoscale) sample() admin.ScaleSample {
	sample := admin.ScaleSample{Wanted: a.fleet.Wanted(), Decisions: make(map[string]uint64)}
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.on {
		return sample
	}
	sample.Adapts, sample.Load = true, a.last.Load
	for _, reason := range scale.Reasons() {
		if reason != scale.Enough {
			sample.Decisions[reason.String()] = a.counts[reason]
		}
	}
	return sample
}

// look decides once, and has the fleet do it.
func (a *autoscale) look(now time.Time) {
	a.acting.Lock()
	defer a.acting.Unlock()
	if !a.adapts() {
		return
	}
	before := a.fleet.Wanted()
	sample := a.gather(now)
	d := a.decide(sample, before)
	if !d.Changed || d.Wanted == before {
		return
	}
	if err := a.fleet.Scale(d.Wanted); err != nil {
		a.log.Warn("the number of workers stays as it is", "workers", before, "wanted", d.Wanted, "error", err)
		return
	}
	a.log.Info("worker count changed", "from", before, "to", d.Wanted, "reason", d.Reason.String(), "why", d.Words)
}

func (a *autoscale) adapts() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.on
}

// decide asks for what is wanted; wanted is what the fleet believes so far, which
// others may have changed.
func (a *autoscale) decide(sample scale.Sample, wanted int) scale.Decision {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.begun || a.last.Wanted != wanted {
		a.scaler.Set(wanted, sample.Now)
		a.begun = true
	}
	d := a.scaler.Decide(sample)
	if a.held > 0 {
		a.last = scale.Decision{Wanted: d.Wanted, Load: d.Load}
		d.Changed = d.Wanted != wanted
		return d
	}
	if d.Reason != a.last.Reason || d.Changed {
		a.counts[d.Reason]++
	}
	a.tellLimit(d, sample.Now)
	a.last = d
	return d
}

// tellLimit logs that more workers would be needed than there may be.
func (a *autoscale) tellLimit(d scale.Decision, now time.Duration) {
	if d.Changed || d.Words == "" || d.Reason == a.last.Reason {
		return
	}
	if at, told := a.toldAt[d.Reason]; told && now-at < limitToldEvery {
		return
	}
	a.toldAt[d.Reason] = now
	a.log.Warn("more workers are needed than there may be", "workers", d.Wanted, "reason", d.Reason.String(), "why", d.Words)
}

// measured is what was measured last for those who look.
type measured struct {
	sample scale.Sample
	cpu    map[int]time.Duration // of each worker, by its process group; not changed
}

// measure is what a decision would be made by now. While the number of workers is being
// changed, which can take long, it is what was measured last, nil if nothing was.
func (a *autoscale) measure(now time.Time) *measured {
	if !a.acting.TryLock() {
		return a.seen.Load()
	}
	defer a.acting.Unlock()
	m := &measured{a.gather(now), maps.Clone(a.machine.used)}
	a.seen.Store(m)
	return m
}

// gather puts together what is known now.
func (a *autoscale) gather(now time.Time) scale.Sample {
	load, snapshot := a.traffic.Load(), a.traffic.Rank()
	workers := a.fleet.Workers()
	a.boots.look(workers)
	a.machine.look(now, workers)
	s := scale.Sample{
		Now: now.Sub(a.began), Arrivals: load.Arrived, Served: load.Ended, SlotTime: load.SlotTime,
		Shed: load.Shed, Waiting: load.Waiting, Oldest: load.Oldest, Long: snapshot.LongCalls,
		Boot: a.boots.usual(), Failing: a.boots.failing(workers),
	}
	countEndpoints(&s, workers, snapshot.Endpoints)
	a.machine.tell(&s)
	return s
}
