package service

import (
	"fmt"

	"github.com/cabrank/cabrank/internal/admin"
	"github.com/cabrank/cabrank/internal/discover"
	"github.com/cabrank/cabrank/internal/door"
	"github.com/cabrank/cabrank/internal/handover"
	"github.com/cabrank/cabrank/internal/rank"
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
		return !s.orders.stopping.Load() && s.sockets.serves()
	}
	return s.relay.Serving()
}

// Alive implements admin.Health: only a stuck supervisor is not.
func (s *service) Alive() bool { return s.workers == nil || s.workers.Alive() }

func (s *service) sources() admin.Sources {
	sources := admin.Sources{
		Build:       s.build,
		States:      mapped(worker.States(), worker.State.String),
		Calls:       func() relay.Stats { return s.relay.Stats() },
		QueueLength: s.relay.Waiting,
		Slots:       s.slotSamples,
		Rank:        s.rankSample,
		Workers:     s.workerSamples,

		LinesDropped: s.linesDropped,
		Expiring:     s.expiring,

		UpstreamStates: mapped(discover.States(), discover.State.String),
		Upstreams:      s.upstreamSamples,
		Lookups:        s.lookupSamples,

		Sockets: s.socketSource(),
	}
	if s.autoscale != nil {
		sources.Scale = s.autoscale.sample
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

// mapped makes a list of another one.
func mapped[A, B any](from []A, to func(A) B) (all []B) {
	for _, a := range from {
		all = append(all, to(a))
	}
	return all
}

// slotSamples has the endpoints that are there. Workers that have never been ready have no
// slots, which is not the same as no value; a place without a worker has none.
func (s *service) slotSamples() (samples []admin.SlotSample) {
	told := make(map[string]bool)
	for _, w := range s.fleet() {
		told[w.Name] = w.State == worker.Vacant
	}
	for _, e := range s.relay.Rank().Endpoints {
		if told[e.Name] {
			continue // nobody is there who could have a slot
		}
		told[e.Name] = true
		samples = append(samples, admin.SlotSample{
			Worker: e.Name, InFlight: e.InFlight, Slots: e.Slots,
			Usable: e.Limit, Ghosts: e.Ghosts, Suspect: e.Suspect || s.turnsAway(e.Name), Pace: e.Pace,
		})
	}
	for _, w := range s.fleet() {
		if w.State != worker.Vacant && !told[w.Name] {
			samples = append(samples, admin.SlotSample{Worker: w.Name, Pace: 1})
		}
	}
	return samples
}

// turnsAway reports whether an endpoint is one that turns calls away.
func (s *service) turnsAway(name string) bool {
	return s.outside.Activity(name).TurnsAway || s.places != nil && s.places.Activity(name).TurnsAway
}

func (s *service) rankSample() admin.RankSample {
	state := s.relay.Rank()
	sample := admin.RankSample{LongCalls: state.LongCalls, Callers: state.Accounts, Overload: s.relay.Overloaded(), Decisions: s.relay.Decisions()}
	sample.Lanes = mapped(state.Lanes, func(l rank.LaneState) admin.LaneSample {
		return admin.LaneSample{Lane: l.Name, Waiting: l.Waiting, Running: l.Running}
	})
	return sample
}

func (s *service) workerSamples() []admin.WorkerSample {
	return mapped(s.fleet(), func(w worker.Status) admin.WorkerSample {
		return admin.WorkerSample{Worker: w.Name, State: w.State.String(), Restarts: byName[uint64](w.Restarts), Retired: byName[uint64](w.Retired)}
	})
}

// byName counts what has names by these.
func byName[N int | uint64, K interface {
	comparable
	fmt.Stringer
}](counted map[K]int) map[string]N {
	named := make(map[string]N, len(counted))
	for what, n := range counted {
		named[what.String()] = N(n)
	}
	return named
}
