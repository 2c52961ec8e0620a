package service

import (
	"fmt"

	"github.com/cabrank/cabrank/internal/admin"
	"github.com/cabrank/cabrank/internal/discover"
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
		return !s.orders.stopping.Load() && s.sockets.serves()
	}
	return s.relay.Serving()
}

// Alive implements admin.Health: only a stuck supervisor is not.
func (s *service) Alive() bool { return s.workers == nil || s.workers.Alive() }

func (s *service) sources() admin.Sources {
	sources := admin.Sources{
		Build:       s.build,
		States:      labels(worker.States()),
		Calls:       func() relay.Stats { return s.relay.Stats() },
		QueueLength: s.relay.Waiting,
		Slots:       s.slotSamples,
		Rank:        s.rankSample,
		Workers:     s.workerSamples,

		LinesDropped: s.linesDropped,
		Expiring:     s.expiring,

		UpstreamStates: labels(discover.States()),
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

// labels are the names of values, for a metric.
func labels[S fmt.Stringer](of []S) (names []string) {
	for _, s := range of {
		names = append(names, s.String())
	}
	return names
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
	for _, lane := range state.Lanes {
		sample.Lanes = append(sample.Lanes, admin.LaneSample{Lane: lane.Name, Waiting: lane.Waiting, Running: lane.Running})
	}
	return sample
}

func (s *service) workerSamples() (samples []admin.WorkerSample) {
	for _, w := range s.fleet() {
		samples = append(samples, admin.WorkerSample{
			Worker: w.Name, State: w.State.String(), Restarts: byName[uint64](w.Restarts), Retired: byName[uint64](w.Retired),
		})
	}
	return samples
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
