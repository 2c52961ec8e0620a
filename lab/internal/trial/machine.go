package trial

import (
	"cmp"

	"github.com/cabrank/cabrank/lab/internal/caller"
	"github.com/cabrank/cabrank/lab/internal/scenario"
	"github.com/cabrank/cabrank/lab/internal/testbed"
)

// otherFiles are descriptors of a generator that are no connection of a call, amply.
const otherFiles = 1000

// generators is how many there are for an arm at a load: as many as are asked for, and as the
// descriptors of a process ask for.
func (t *trial) generators(a *scenario.Arm, l *scenario.Load) int {
	n := max(a.Client.Processes, l.Processes, 1)
	if each := int(t.Limits.Files) - otherFiles; each > 0 {
		n = max(n, (demand(a, l, 1).Connections+each-1)/each)
	}
	return n
}

// demand is what an arm needs of the machine at a load.
func demand(a *scenario.Arm, l *scenario.Load, generators int) testbed.Demand {
	d := testbed.Demand{Generators: generators, Listeners: 1}
	switch a.Front.Kind {
	case scenario.FrontDNS:
		d.Listeners = cmp.Or(l.Workers, a.Workers.Count)
	case scenario.FrontDNAT, scenario.FrontHAProxyTCP:
		d.Through = true
	default:
	}
	if a.Client.Connections != caller.PerCall {
		return d // few
	}
	d.Connections = underWay(l)
	d.AtOnce = l.AtOnce
	return d
}

// underWay is how many calls are under way at a time, at most: all that are due within
// the time that one may take.
func underWay(l *scenario.Load) int {
	if l.AtOnce > 0 {
		if l.Options.Timeout > l.Every {
			return 2 * l.AtOnce
		}
		return l.AtOnce
	}
	p, err := l.Plan(0)
	switch {
	case err != nil:
		return 0
	case !p.Open():
		return int(p.Callers.Most())
	case p.Timeout > 0:
		return min(int(p.Rate.Most()*p.Timeout.Seconds()), p.Most)
	default:
		return 0 // it depends on the service; Most keeps it within bounds
	}
}
