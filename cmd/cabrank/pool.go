package main

import (
	"sync"

	"github.com/cabrank/cabrank/internal/relay"
	"github.com/cabrank/cabrank/internal/worker"
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

	mu        sync.Mutex // guards endpoints
	endpoints map[string]*relay.Endpoint
}

func newPool(r *relay.Relay, slots int, local bool, changed func()) *pool {
	return &pool{relay: r, slots: slots, local: local, changed: changed, endpoints: make(map[string]*relay.Endpoint)}
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
	p.relay.Up(p.endpoint(name), network, address)
	p.changed()
}

// Down implements worker.Registry and discover.Registry.
func (p *pool) Down(name string) {
	p.relay.Down(p.endpoint(name))
	p.changed()
}

// Suspect implements worker.Registry.
func (p *pool) Suspect(name string, suspect bool) { p.relay.Suspect(p.endpoint(name), suspect) }

// Outage implements worker.Registry.
func (p *pool) Outage(outage bool) { p.relay.Outage(outage) }

// Cut implements worker.Registry and discover.Registry.
func (p *pool) Cut(name string) { p.relay.Cut(p.endpoint(name)) }

// remove takes an endpoint out for good; one that is heard of later under its
// name is another.
func (p *pool) remove(name string) {
	p.mu.Lock()
	e, known := p.endpoints[name]
	delete(p.endpoints, name)
	p.mu.Unlock()
	if known {
		p.relay.RemoveEndpoint(e)
	}
}

// Activity implements worker.Activity. Who asks about an endpoint that there is
// not makes none.
func (p *pool) Activity(name string) worker.Work {
	p.mu.Lock()
	e, known := p.endpoints[name]
	p.mu.Unlock()
	if !known {
		return worker.Work{}
	}
	return worker.Work(p.relay.Activity(e))
}
