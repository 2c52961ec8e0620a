package service

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/cabrank/cabrank/internal/admin"
	"github.com/cabrank/cabrank/internal/door"
	"github.com/cabrank/cabrank/internal/handover"
	"github.com/cabrank/cabrank/internal/push"
	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/worker"
)

// adminTime bounds the end of pages.
const adminTime = time.Second

// server is a page: the probes, the metrics, the control, or where applications push.
type server interface {
	Failed() <-chan error
	Release()
	Shutdown(ctx context.Context) error
}

// startPages opens the pages but for the control, where they are wanted.
func (s *service) startPages() error {
	for _, p := range []struct {
		wanted             bool
		name, key, address string
		serve              func(net.Listener) (server, error)
	}{
		{s.cfg.Probes.On, handover.Probes, "probes", s.cfg.Probes.Addr(), func(on net.Listener) (server, error) {
			return admin.ServeProbes(on, s, s.log), nil
		}},
		{s.cfg.Metrics.On, handover.Metrics, "metrics", s.cfg.Metrics.Addr(), func(on net.Listener) (server, error) {
			return admin.ServeMetrics(on, s.cfg.Metrics.Path, s.sources(), s.log)
		}},
		{s.pushes(), handover.Push, "socket.push", s.cfg.Socket.Push.Addr(), func(on net.Listener) (server, error) {
			return push.Serve(on, s.sockets.Server, s.pushToken, s.log), nil
		}},
	} {
		if !p.wanted {
			continue
		}
		on, _, err := s.listen(p.name, p.key, p.address, door.Listen)
		if err != nil {
			return err
		}
		s.addresses = append(s.addresses, admin.Listener{Kind: p.name, Address: on.Addr().String()})
		page, err := p.serve(on)
		if err != nil {
			return err
		}
		s.addPage(p.name, page)
	}
	return nil
}

// addPage reports a page that dies, and has it end with the service.
func (s *service) addPage(name string, page server) {
	s.pages[name] = page
	go func() { // ends with the page
		if err := <-page.Failed(); err != nil {
			s.fail(err)
		}
	}()
}

// closePages ends the pages with these names, as far as there are any.
func (s *service) closePages(names ...string) {
	ctx, cancel := context.WithTimeout(context.Background(), adminTime)
	defer cancel()
	var ending sync.WaitGroup
	for _, name := range names {
		if page := s.pages[name]; page != nil {
			ending.Go(func() { _ = page.Shutdown(ctx) }) // the time limit is the answer to an error
		}
	}
	ending.Wait()
}

// Started implements admin.Health: an endpoint has been ready, where there are any.
func (s *service) Started() bool {
	return s.socketsAlone() || s.upstreams != nil && s.upstreams.EverReached() || s.workers != nil && s.workers.EverReady()
}

// Ready implements admin.Health: calls can be served. Of sockets alone it is not, from the
// signal to stop on, and while Redis is away for long.
func (s *service) Ready() bool {
	if s.socketsAlone() {
		return !s.orders.serving.isOver() && s.sockets.serves()
	}
	return s.relay.Serving()
}

// Alive implements admin.Health: only a stuck supervisor is not.
func (s *service) Alive() bool { return s.workers == nil || s.workers.Alive() }

// sources are what the metrics page shows.
func (s *service) sources() admin.Sources {
	sources := admin.Sources{
		Build: s.build, Traffic: s.relay, Slots: s.slotStates, Workers: s.fleet, LinesDropped: s.linesDropped, Expiring: s.expiring,
		Upstreams: s.upstreams.Endpoints, Lookups: s.upstreams.Lookups,
	}
	if s.sockets != nil {
		sources.Sockets = s.sockets.sample
	}
	if s.tracer != nil {
		sources.Spans = s.spans
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

// slotStates has the endpoints that are there. Workers that have never been ready have no
// slots, which is not the same as no value; a place without a worker has none.
func (s *service) slotStates() (states []rank.EndpointState) {
	told := make(map[string]bool)
	for _, w := range s.fleet() {
		told[w.Name] = w.State == worker.Vacant
	}
	for _, e := range s.relay.Rank().Endpoints {
		if told[e.Name] {
			continue // nobody is there who could have a slot
		}
		told[e.Name] = true
		e.Suspect = e.Suspect || s.turnsAway(e.Name)
		states = append(states, e)
	}
	for _, w := range s.fleet() {
		if w.State != worker.Vacant && !told[w.Name] {
			states = append(states, rank.EndpointState{Name: w.Name, Pace: 1})
		}
	}
	return states
}

// turnsAway reports whether an endpoint is one that turns calls away.
func (s *service) turnsAway(name string) bool {
	return s.outside.Activity(name).TurnsAway || s.places != nil && s.places.Activity(name).TurnsAway
}
