package worker

import (
	"fmt"
	"net/netip"
	"slices"
	"sync"
)

// maxSpares bounds the search for a free port, one bind per try.
const maxSpares = 500

// ports are the tcp addresses: index i has port start+i and metrics port
// start+i+100. Indexes below count belong to the workers, the others are spares.
// With alone only metrics ports are handed out, and start is the first of them.
type ports struct {
	host     netip.Addr
	start    int
	count    int
	alone    bool
	bindable func(netip.AddrPort) error // the zero Addr means every address: a metrics page may listen on any

	mu      sync.Mutex
	holder  map[int]int // index -> number of the worker that has it
	avoided []int       // ports of another cabrank, whose workers may not listen there yet
}

func (p *ports) open() error { return nil }
func (p *ports) close()      {}

// claim gives the worker its own index if both ports of it are free, else leaves it
// at the current one, else moves it to the first free spare: so a scraper that knows the
// port of a metrics page finds the page again as soon as possible. The check comes before
// every exec, so a worker is never started on a port that is taken; Group.Listeners finds a
// process that takes the port between the check and the worker's bind.
func (p *ports) claim(number, current int) (endpoint, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.holder[current] == number {
		delete(p.holder, current)
	}
	for _, index := range []int{number, current} {
		if p.free(index) {
			return p.take(number, index), nil
		}
	}
	for index := p.count; index < p.count+maxSpares && p.start+index+metricsOffset <= maxPort; index++ {
		if p.free(index) {
			return p.take(number, index), nil
		}
	}
	return endpoint{}, fmt.Errorf("port %d, or that of its metrics page, is taken, and no spare one is free from %d on", p.start+number, p.start+p.count)
}

func (p *ports) take(number, index int) endpoint {
	p.holder[index] = number
	return endpoint{
		index:       index,
		network:     "tcp",
		address:     p.at(index).String(),
		metricsPort: p.start + index + metricsOffset,
	}
}

func (p *ports) free(index int) bool {
	_, held := p.holder[index]
	if held || p.crossesMetrics(index) || p.isAvoided(index) {
		return false
	}
	if p.alone {
		return p.bindable(p.page(index)) == nil
	}
	return p.bindable(p.at(index)) == nil && p.bindable(p.page(index)) == nil
}

func (p *ports) isAvoided(index int) bool {
	return slices.Contains(p.avoided, int(p.page(index).Port())) || !p.alone && slices.Contains(p.avoided, p.start+index)
}

// avoid sets the ports that are left to another cabrank.
func (p *ports) avoid(all []int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.avoided = all
}

// inUse returns the ports that workers have.
func (p *ports) inUse() (all []int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for index := range p.holder {
		all = append(all, int(p.page(index).Port()))
		if !p.alone {
			all = append(all, p.start+index)
		}
	}
	return all
}

// crossesMetrics reports whether one of the index's two ports is the other port of
// another worker, as can happen with more than 100 workers and spares.
func (p *ports) crossesMetrics(index int) bool {
	if p.alone {
		return false
	}
	below, above := index-metricsOffset, index+metricsOffset
	_, heldBelow := p.holder[below]
	_, heldAbove := p.holder[above]
	return heldAbove || heldBelow || below >= 0 && below < p.count
}

func (p *ports) at(index int) netip.AddrPort {
	return netip.AddrPortFrom(p.host, uint16(p.start+index))
}

// page is where the metrics page of an index may listen.
func (p *ports) page(index int) netip.AddrPort {
	port := p.start + index
	if !p.alone {
		port += metricsOffset
	}
	return netip.AddrPortFrom(netip.Addr{}, uint16(port))
}
