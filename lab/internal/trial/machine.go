package trial

import (
	"github.com/cabrank/cabrank/lab/internal/caller"
	"github.com/cabrank/cabrank/lab/internal/scenario"
	"github.com/cabrank/cabrank/lab/internal/testbed"
)

// Allowed says what a machine with such limits cannot measure, for Options.Allow: where
// descriptors, ports or places at a listener end, those would be measured.
func Allowed(limits testbed.Limits) func(*scenario.Arm, *scenario.Load, int) string {
	return func(a *scenario.Arm, l *scenario.Load, generators int) string {
		d := demand(a, l, generators)
		return limits.Refuse(d)
	}
}

// GeneratorsFor is how many generators the descriptors of a process ask for, for
// Options.Generators.
func GeneratorsFor(limits testbed.Limits) func(*scenario.Arm, *scenario.Load) int {
	const others = 1000 // descriptors that are no connection of a call, amply
	return func(a *scenario.Arm, l *scenario.Load) int {
		if limits.Files <= others {
			return 1
		}
		each := int(limits.Files) - others
		return (demand(a, l, 1).Connections + each - 1) / each
	}
}

// demand is what an arm needs of the machine at a load.
func demand(a *scenario.Arm, l *scenario.Load, generators int) testbed.Demand {
	workers := a.Workers.Count
	if l.Workers > 0 {
		workers = l.Workers
	}
	d := testbed.Demand{Generators: generators, Listeners: workers}
	switch a.Front.Kind {
	case scenario.FrontNone:
		d.Listeners = 1
	case scenario.FrontDNS:
	case scenario.FrontDNAT, scenario.FrontHAProxyTCP:
		d.Listeners, d.Through = 1, true
	default:
		d.Listeners = 1
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
