package config

import (
	"fmt"
	"slices"
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
	rules := slices.Concat(c.workerRules(), c.slotRules(), c.authRules(), c.tlsRules())
	for _, r := range c.Methods {
		rules = append(rules, c.methodRules(r)...)
	}
	for _, r := range rules {
		if r.broken {
			faults = append(faults, c.faultAt(r.key, r.what, r.allowed))
		}
	}
	return slices.Concat(faults, c.methodsOfLanes(), c.tidyCallers(), c.sharedPorts(), c.workerPorts())
}

func (c *Config) faultAt(key, what, allowed string) Fault {
	return Fault{Origin: c.origins[key], Key: key, What: what, Allowed: allowed}
}

// listener is one of cabrank's own listeners.
type listener struct {
	key  string
	host string
	port int
}

// listeners returns those that will be opened on a port that is known before.
func (c *Config) listeners() (all []listener) {
	add := func(so bool, key, host string, port int) {
		if so && port != 0 {
			all = append(all, listener{key, host, port})
		}
	}
	add(true, "listen", c.Listen.Host, c.Listen.Port)
	add(c.Probes.On, "probes", c.Probes.Host, c.Probes.Port)
	add(c.Metrics.On, "metrics", c.Metrics.Host, c.Metrics.Port)
	host, port, _ := splitHostPort(c.Socket.Push) // off has no port
	add(len(c.Socket.Paths) > 0, "socket.push", host, port)
	return all
}

func (c *Config) sharedPorts() Faults {
	var faults Faults
	all := c.listeners()
	for i, l := range all {
		for _, other := range all[:i] {
			if l.port != other.port || !hostsMeet(l.host, other.host) {
				continue
			}
			what := fmt.Sprintf("%d is also %s (%s)", l.port, other.key, c.origins[other.key])
			faults = append(faults, c.faultAt(l.key, what, "a port of its own, or 0"))
		}
	}
	return faults
}

// hostsMeet says whether two listeners on one port would be in each other's
// way. Two names of one address are left to the bind to find out.
func hostsMeet(a, b string) bool {
	return a == b || isWildcard(a) || isWildcard(b)
}

func isWildcard(host string) bool { return host == "" || host == "0.0.0.0" || host == "::" }
