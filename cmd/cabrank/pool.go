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
	relay *relay.Relay
	slots int  // of each endpoint
	local bool // the endpoints are workers of this process

	mu        sync.Mutex // guards endpoints
	endpoints map[string]*relay.Endpoint
}

func newPool(r *relay.Relay, slots int, local bool) *pool {
	return &pool{relay: r, slots: slots, local: local, endpoints: make(map[string]*relay.Endpoint)}
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
func (p *pool) Up(name, network, address string) { p.relay.Up(p.endpoint(name), network, address) }

// Down implements worker.Registry and discover.Registry.
func (p *pool) Down(name string) { p.relay.Down(p.endpoint(name)) }

// Suspect implements worker.Registry.
func (p *pool) Suspect(name string, suspect bool) { p.relay.Suspect(p.endpoint(name), suspect) }

// Cut implements worker.Registry and discover.Registry.
func (p *pool) Cut(name string) { p.relay.Cut(p.endpoint(name)) }

// Activity implements worker.Activity.
func (p *pool) Activity(name string) worker.Work {
	return worker.Work(p.relay.Activity(p.endpoint(name)))
}
