package config

import (
	"fmt"
	"slices"
	"strings"
)

// rule is what holds between values that are right alone.
type rule struct {
	broken    bool
	key, what string // at which it is told, and how
	allowed   string
}

// contradictions looks for values that are right alone and wrong together.
func (c *Config) contradictions() Faults {
	faults := c.placeholdersFit()
	all := [][]rule{c.workerRules(), c.slotRules(), c.authRules(), c.tlsRules(), c.sharedPorts(), c.workerPorts()}
	for _, r := range c.Methods {
		all = append(all, c.methodRules(r))
	}
	faults = append(faults, c.broken(all...)...)
	return append(append(faults, c.methodsOfLanes()...), c.tidyCallers()...)
}

// broken are the faults of rules.
func (c *Config) broken(all ...[]rule) (faults Faults) {
	for _, rules := range all {
		for _, r := range rules {
			if r.broken {
				faults = append(faults, c.faultAt(r.key, r.what, r.allowed))
			}
		}
	}
	return faults
}

// withMethodRules adds to faults what is wrong within the rules of methods that have none, each
// before the faults of the lines behind it.
func (c *Config) withMethodRules(faults Faults) Faults {
	all := slices.Clone(faults)
	for _, r := range c.Methods {
		path := entryPath("methods", r.Pattern)
		if slices.ContainsFunc(faults, func(f Fault) bool { return strings.HasPrefix(f.Key, path) }) {
			continue
		}
		for _, f := range c.broken(c.methodRules(r)) {
			behind := slices.IndexFunc(all, func(o Fault) bool { return o.Origin.File == f.Origin.File && o.Origin.Line > f.Origin.Line })
			if behind < 0 {
				behind = len(all)
			}
			all = slices.Insert(all, behind, f)
		}
	}
	return all
}

func (c *Config) faultAt(key, what, allowed string) Fault {
	return Fault{Origin: c.origins[key], Key: key, What: what, Allowed: allowed}
}

// listener is one of cabrank's own listeners.
type listener struct {
	key string
	Listener
}

// listeners returns those that will be opened on a port that is known before.
func (c *Config) listeners() []listener {
	host, port, _ := splitHostPort(c.Socket.Push) // off has no port
	all := []listener{
		{"listen", c.Listen}, {"probes", c.Probes}, {"metrics", c.Metrics.Listener},
		{"socket.push", Listener{On: len(c.Socket.Paths) > 0, Host: host, Port: port}},
	}
	return slices.DeleteFunc(all, func(l listener) bool { return !l.On || l.Port == 0 })
}

func (c *Config) sharedPorts() (rules []rule) {
	all := c.listeners()
	for i, l := range all {
		for _, other := range all[:i] {
			what := fmt.Sprintf("%d is also %s (%s)", l.Port, other.key, c.origins[other.key])
			rules = append(rules, rule{l.Port == other.Port && hostsMeet(l.Host, other.Host), l.key, what, "a port of its own, or 0"})
		}
	}
	return rules
}

// hostsMeet says whether two listeners on one port would be in each other's
// way. Two names of one address are left to the bind to find out.
func hostsMeet(a, b string) bool {
	every := []string{"", "0.0.0.0", "::"}
	return a == b || slices.Contains(every, a) || slices.Contains(every, b)
}
