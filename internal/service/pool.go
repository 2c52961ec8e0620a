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
	slots   int    // of each endpoint
	local   bool   // the endpoints are workers of this process
	changed func() // is told when an endpoint comes or goes; it returns at once
	dial    dial   // of endpoints that speak TLS

	mu        sync.Mutex // guards what follows
	endpoints map[string]*relay.Endpoint
	asking    map[string]context.CancelFunc // by the name of an endpoint that is up: ends the questions about its services
}

// dial connects to an endpoint.
type dial = func(ctx context.Context, network, address string) (net.Conn, error)

func newPool(r *relay.Relay, slots int, local bool, changed func()) *pool {
	return &pool{relay: r, slots: slots, local: local, changed: changed, endpoints: make(map[string]*relay.Endpoint), asking: make(map[string]context.CancelFunc)}
}

// endpoint returns the endpoint with a name.
func (p *pool) endpoint(name string) *relay.Endpoint {
	p.mu.Lock()
	defer p.mu.Unlock()
	e, known := p.endpoints[name]
	if !known {
		e = p.relay.AddEndpoint(name, p.slots, p.local)
		p.endpoints[name] = e
	}
	return e
}

// Up implements worker.Registry and discover.Registry.
func (p *pool) Up(name, network, address string) {
	e := p.endpoint(name)
	p.stopAsking(name)
	p.relay.Up(e, network, address)
	p.ask(name, e, network, address)
	p.changed()
}

// Down implements worker.Registry and discover.Registry.
func (p *pool) Down(name string) {
	p.stopAsking(name)
	p.relay.Down(p.endpoint(name))
	p.changed()
}

// ask has an endpoint that is up asked for its services, for as long as it is.
func (p *pool) ask(name string, e *relay.Endpoint, network, address string) {
	ctx, cancel := context.WithCancel(context.Background())
	p.mu.Lock()
	p.asking[name] = cancel
	p.mu.Unlock()
	d := check.Describer{Network: network, Address: address, Dial: p.dial, Tell: func(services map[string]bool) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if ctx.Err() == nil { // its end and the next Up come in this order, see stopAsking
			p.relay.Describe(e, services)
		}
	}}
	go d.Describe(ctx) // ends with ctx
}

// stopAsking ends the questions to an endpoint. Nothing is told of it afterwards.
func (p *pool) stopAsking(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if cancel := p.asking[name]; cancel != nil {
		cancel()
		delete(p.asking, name)
	}
}

// stopAll ends the questions to all endpoints.
func (p *pool) stopAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, cancel := range p.asking {
		cancel()
	}
	clear(p.asking)
}

// Suspect implements worker.Registry.
func (p *pool) Suspect(name string, suspect bool) { p.relay.Suspect(p.endpoint(name), suspect) }

// Outage implements worker.Registry.
func (p *pool) Outage(outage bool) { p.relay.Outage(outage) }

// Cut implements worker.Registry and discover.Registry.
func (p *pool) Cut(name string) { p.relay.Cut(p.endpoint(name)) }

// Add implements discover.Membership.
func (p *pool) Add(name string) { p.endpoint(name) }

// Remove implements discover.Membership: it takes an endpoint out for good; one that is
// heard of later under its name is another.
func (p *pool) Remove(name string) {
	p.mu.Lock()
	e, known := p.endpoints[name]
	delete(p.endpoints, name)
	p.mu.Unlock()
	p.stopAsking(name)
	if known {
		p.relay.RemoveEndpoint(e)
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
	return p.relay.Activity(e)
}
