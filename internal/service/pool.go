package service

import (
	"context"
	"net"
	"sync"

	"github.com/cabrank/cabrank/internal/health"
	"github.com/cabrank/cabrank/internal/health/check"
	"github.com/cabrank/cabrank/internal/relay"
)

// pool joins what starts and watches endpoints (package worker or discover) to
// the relay that sends them calls; neither knows the other. Each has a pool of
// its own. An endpoint is made when its name is heard first.
//
// Concurrency: all methods may be called from anywhere.
type pool struct {
	relay   *relay.Relay
	slots   int                                                                  // of each endpoint
	local   bool                                                                 // the endpoints are workers of this process
	changed func()                                                               // is told when an endpoint comes or goes; it returns at once
	dial    func(ctx context.Context, network, address string) (net.Conn, error) // to those that speak TLS
	living  context.Context                                                      //nolint:containedctx // of the service: its end is that of all questions

	mu        sync.Mutex // guards what follows
	endpoints map[string]*endpoint
}

// endpoint is one of the relay's, which is asked for its services while it is up.
type endpoint struct {
	*relay.Endpoint

	stopAsking func() // guarded by the pool
}

func (s *service) newPool(local bool) *pool {
	return &pool{
		relay: s.relay, slots: s.cfg.Workers.Slots.N, local: local, changed: s.schema.Changed, dial: s.dial,
		living: s.living, endpoints: make(map[string]*endpoint),
	}
}

// endpoint returns the endpoint with a name.
func (p *pool) endpoint(name string) *endpoint {
	p.mu.Lock()
	defer p.mu.Unlock()
	e, known := p.endpoints[name]
	if !known {
		e = &endpoint{p.relay.AddEndpoint(name, p.slots, p.local), func() {}}
		p.endpoints[name] = e
	}
	return e
}

// Up implements worker.Registry and discover.Registry.
func (p *pool) Up(name, network, address string) {
	e := p.endpoint(name)
	asking, stop := context.WithCancel(p.living)
	p.stopAsking(e, stop)
	p.relay.Up(e.Endpoint, network, address)
	d := check.Describer{Network: network, Address: address, Dial: p.dial, Tell: func(services map[string]bool) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if asking.Err() == nil {
			p.relay.Describe(e.Endpoint, services)
		}
	}}
	go d.Describe(asking)
	p.changed()
}

// Down implements worker.Registry and discover.Registry.
func (p *pool) Down(name string) {
	e := p.endpoint(name)
	p.stopAsking(e, func() {})
	p.relay.Down(e.Endpoint)
	p.changed()
}

// stopAsking ends the questions to an endpoint, of which nothing is told afterwards. next
// ends those that follow.
func (p *pool) stopAsking(e *endpoint, next func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e.stopAsking()
	e.stopAsking = next
}

// Suspect implements worker.Registry.
func (p *pool) Suspect(name string, suspect bool) {
	p.relay.Suspect(p.endpoint(name).Endpoint, suspect)
}

// Outage implements worker.Registry.
func (p *pool) Outage(outage bool) { p.relay.Outage(outage) }

// Cut implements worker.Registry and discover.Registry.
func (p *pool) Cut(name string) { p.relay.Cut(p.endpoint(name).Endpoint) }

// Add implements discover.Membership.
func (p *pool) Add(name string) { p.endpoint(name) }

// Remove implements discover.Membership: it takes an endpoint out for good; one that is
// heard of later under its name is another.
func (p *pool) Remove(name string) {
	p.mu.Lock()
	e, known := p.endpoints[name]
	delete(p.endpoints, name)
	p.mu.Unlock()
	if known {
		p.stopAsking(e, func() {})
		p.relay.RemoveEndpoint(e.Endpoint)
	}
}

// Activity implements worker.Activity and discover.Activity. Who asks about an endpoint that there is
// not makes none.
func (p *pool) Activity(name string) health.Work {
	p.mu.Lock()
	e, known := p.endpoints[name]
	p.mu.Unlock()
	if !known {
		return health.Work{}
	}
	return p.relay.Activity(e.Endpoint)
}
