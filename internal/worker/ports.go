package worker

import (
	"fmt"
	"net/netip"
	"sync"
)

// maxSpares bounds the search for a free port, one bind per try.
const maxSpares = 500

// ports are the tcp places: index i has port start+i and metrics port
// start+i+100. Indexes below count are the workers' own, the others spares.
// With alone there are no metrics ports beside them.
type ports struct {
	host     netip.Addr
	start    int
	count    int
	alone    bool
	bindable func(netip.AddrPort) error

	mu     sync.Mutex
	holder map[int]int // index -> number of the worker that has it
}

func (p *ports) open() error { return nil }
func (p *ports) close()      {}

// claim keeps the worker at its current index if that port is free, and else
// moves it to the first free spare. The check comes before every exec, so a
// worker is never started on a port that somebody holds; who takes it between
// the check and the worker's own bind is told apart by listenerOwners.
func (p *ports) claim(number, current int) (place, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.holder[current] == number {
		delete(p.holder, current)
	}
	if p.free(current) {
		return p.take(number, current), nil
	}
	for index := p.count; index < p.count+maxSpares && p.start+index+metricsOffset <= maxPort; index++ {
		if p.free(index) {
			return p.take(number, index), nil
		}
	}
	return place{}, fmt.Errorf("port %d is taken and no spare one is free from %d on", p.start+current, p.start+p.count)
}

func (p *ports) take(number, index int) place {
	p.holder[index] = number
	return place{
		index:       index,
		network:     "tcp",
		address:     p.at(index).String(),
		metricsPort: p.start + index + metricsOffset,
	}
}

func (p *ports) free(index int) bool {
	_, held := p.holder[index]
	return !held && !p.crossesMetrics(index) && p.bindable(p.at(index)) == nil
}

// crossesMetrics reports whether one of the index's two ports is another
// worker's other one: with more than 100 workers, or spares that far up.
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
