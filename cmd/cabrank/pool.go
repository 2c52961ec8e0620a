package main

import (
	"github.com/cabrank/cabrank/internal/relay"
	"github.com/cabrank/cabrank/internal/worker"
)

// pool joins what starts and watches endpoints (package worker or discover) to
// the relay that sends them calls; neither knows the other. It is filled before
// anything runs and not changed afterwards.
type pool struct {
	relay     *relay.Relay
	endpoints map[string]*relay.Endpoint
}

func newPool(r *relay.Relay) *pool {
	return &pool{relay: r, endpoints: make(map[string]*relay.Endpoint)}
}

func (p *pool) add(name string, slots int, local bool) {
	p.endpoints[name] = p.relay.AddEndpoint(name, slots, local)
}

// Up implements worker.Registry and discover.Registry.
func (p *pool) Up(name, network, address string) { p.relay.Up(p.endpoints[name], network, address) }

// Down implements worker.Registry and discover.Registry.
func (p *pool) Down(name string) { p.relay.Down(p.endpoints[name]) }

// Suspect implements worker.Registry.
func (p *pool) Suspect(name string, suspect bool) { p.relay.Suspect(p.endpoints[name], suspect) }

// Activity implements worker.Activity.
func (p *pool) Activity(name string) worker.Work {
	return worker.Work(p.relay.Activity(p.endpoints[name]))
}
