package service

import (
	"github.com/cabrank/cabrank/internal/admin"
	"github.com/cabrank/cabrank/internal/door"
	"github.com/cabrank/cabrank/internal/handover"
	"github.com/cabrank/cabrank/internal/relay"
	"github.com/cabrank/cabrank/internal/worker"
)

// startAdmin opens the probes and the metrics page, where they are wanted.
func (s *service) startAdmin() error {
	if s.cfg.Probes.On {
		on, _, err := s.listen(handover.Probes, "probes listening", s.cfg.Probes.Addr(), "--probes", door.Listen)
		if err != nil {
			return err
		}
		s.probes = admin.ServeProbes(on, s, s.log)
		go s.follow(s.probes) // ends with the server
	}
	if s.cfg.Metrics.On {
		on, _, err := s.listen(handover.Metrics, "metrics listening", s.cfg.Metrics.Addr(), "--metrics", door.Listen)
		if err != nil {
			return err
		}
		if s.metrics, err = admin.ServeMetrics(on, s.cfg.Metrics.Path, s.sources(), s.log); err != nil {
			return err
		}
		go s.follow(s.metrics) // ends with the server
	}
	return s.openPush()
}

// follow reports a server that died.
func (s *service) follow(server interface{ Failed() <-chan error }) {
	if err := <-server.Failed(); err != nil {
		s.fail(err)
	}
}

// Started implements admin.Health: an endpoint has been ready, where there are any.
func (s *service) Started() bool {
	return s.socketsAlone() || s.upstreams != nil && s.upstreams.EverReached() || s.workers != nil && s.workers.EverReady()
}

// Ready implements admin.Health: calls can be served. Of sockets alone it is not, from the
// signal to stop on, and while Redis is away for long.
func (s *service) Ready() bool {
	if s.socketsAlone() {
		return !s.orders.stopping.Load() && s.sockets.Serves()
	}
	return s.relay.Serving()
}

// Alive implements admin.Health: only a stuck supervisor is not.
func (s *service) Alive() bool { return s.workers == nil || s.workers.Alive() }

func (s *service) sources() admin.Sources {
	sources := admin.Sources{
		Build:       s.build,
		States:      stateNames(),
		Calls:       func() relay.Stats { return s.relay.Stats() },
		QueueLength: s.relay.Waiting,
		Slots:       s.slotSamples,
		Rank:        s.rankSample,
		Workers:     s.workerSamples,

		LinesDropped: s.linesDropped,
		Expiring:     s.expiring,

		Scale: s.scaleSource(),

		UpstreamStates: upstreamStates(),
		Upstreams:      s.upstreamSamples,
		Lookups:        s.lookupSamples,

		Sockets: s.socketSource(),
	}
	if s.scrape != nil {
		sources.Merged, sources.Scrapes = s.scrape.store, s.scrape.sample
	}
	return sources
}

// linesDropped counts lines that nobody has read, those of the log and those of workers.
func (s *service) linesDropped() map[string]uint64 {
	dropped := map[string]uint64{"log": s.lines.Dropped()}
	if s.access != nil {
		dropped["access_log"] = s.access.log.Dropped()
	}
	if s.workers != nil {
		dropped["workers"] = s.workers.LinesDropped()
	}
	return dropped
}

// scaleSource is where the number of workers comes from, nil without workers.
func (s *service) scaleSource() func() admin.ScaleSample {
	if s.autoscale == nil {
		return nil
	}
	return s.autoscale.sample
}

func stateNames() []string {
	var names []string
	for _, state := range worker.States() {
		names = append(names, state.String())
	}
	return names
}

func (s *service) slotSamples() []admin.SlotSample {
	vacant, known := s.vacantPlaces(), make(map[string]bool)
	var samples []admin.SlotSample
	for _, e := range s.relay.Rank().Endpoints {
		known[e.Name] = true
		if vacant[e.Name] {
			continue // nobody is there who could have a slot
		}
		samples = append(samples, admin.SlotSample{
			Worker: e.Name, InFlight: e.InFlight, Slots: e.Slots,
			Usable: e.Limit, Ghosts: e.Ghosts, Suspect: e.Suspect || s.turnsAway(e.Name), Pace: e.Pace,
		})
	}
	return append(samples, s.slotsToCome(func(name string) bool { return vacant[name] || known[name] })...)
}

// slotsToCome are the samples of workers that have never been ready: they have no
// slots, which is not the same as no value.
func (s *service) slotsToCome(but func(name string) bool) (samples []admin.SlotSample) {
	if s.workers == nil {
		return nil
	}
	for _, w := range s.workers.Workers() {
		if !but(w.Name) {
			samples = append(samples, admin.SlotSample{Worker: w.Name, Pace: 1})
		}
	}
	return samples
}

// turnsAway reports whether an endpoint is one that turns calls away.
func (s *service) turnsAway(name string) bool {
	return s.outside.Activity(name).TurnsAway || s.places != nil && s.places.Activity(name).TurnsAway
}

// vacantPlaces returns the places of workers that have none now, by name.
func (s *service) vacantPlaces() map[string]bool {
	vacant := make(map[string]bool)
	if s.workers == nil {
		return vacant
	}
	for _, w := range s.workers.Workers() {
		if w.State == worker.Vacant {
			vacant[w.Name] = true
		}
	}
	return vacant
}

func (s *service) rankSample() admin.RankSample {
	state := s.relay.Rank()
	sample := admin.RankSample{LongCalls: state.LongCalls, Callers: state.Accounts, Overload: s.relay.Overloaded(), Decisions: s.relay.Decisions()}
	for _, lane := range state.Lanes {
		sample.Lanes = append(sample.Lanes, admin.LaneSample{Lane: lane.Name, Waiting: lane.Waiting, Running: lane.Running})
	}
	return sample
}

func (s *service) workerSamples() []admin.WorkerSample {
	if s.workers == nil {
		return nil
	}
	var samples []admin.WorkerSample
	for _, w := range s.workers.Workers() {
		samples = append(samples, admin.WorkerSample{Worker: w.Name, State: w.State.String(), Restarts: restarts(w), Retired: retired(w)})
	}
	return samples
}

func restarts(w worker.Status) map[string]uint64 {
	byCause := make(map[string]uint64)
	for cause, n := range w.Restarts {
		byCause[cause.String()] = uint64(n)
	}
	return byCause
}

func retired(w worker.Status) map[string]uint64 {
	byReason := make(map[string]uint64)
	for reason, n := range w.Retired {
		byReason[reason.String()] = uint64(n)
	}
	return byReason
}
