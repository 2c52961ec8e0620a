package config

import (
	"fmt"
	"strings"
)

// workerMetricsOffset is the distance from a worker's port to the port of its
// metrics page, as gruf-relay laid them out.
const workerMetricsOffset = maxPortSpan

// contradictions looks for values that are right alone and wrong together.
func (c *Config) contradictions(command []string) Faults {
	var faults Faults
	for _, rule := range []func([]string) *Fault{
		c.oneKindOfEndpoint, c.placeholdersFit, c.enoughWorkers, c.replayFits, c.absorbFits, c.windowGrows, c.windowFits,
		c.slotsGrow, c.streamSlotsFit, c.ringHasKey, c.burstFits,
	} {
		if fault := rule(command); fault != nil {
			faults = append(faults, *fault)
		}
	}
	faults = append(faults, c.reservesFit()...)
	faults = append(faults, c.losersCanStop()...)
	faults = append(faults, c.tidyCallers()...)
	faults = append(faults, c.sharedPorts()...)
	if len(c.Upstreams) == 0 {
		faults = append(faults, c.workerPorts()...)
	}
	return faults
}

func (c *Config) faultAt(key, what, allowed string) *Fault {
	return &Fault{Origin: c.origins[key], Key: key, What: what, Allowed: allowed}
}

func (c *Config) oneKindOfEndpoint(command []string) *Fault {
	if len(c.Upstreams) == 0 || len(command) == 0 {
		return nil
	}
	what := fmt.Sprintf("is set together with a command after -- (%s)", quote(command[0]))
	return c.faultAt("upstreams", what, "one of the two")
}

// placeholdersFit refuses what a unix socket does not have (R19).
func (c *Config) placeholdersFit(command []string) *Fault {
	if c.Workers.Transport != "unix" {
		return nil
	}
	for _, argument := range command {
		for _, placeholder := range []string{"{port}", "{host}"} {
			if strings.Contains(argument, placeholder) {
				what := fmt.Sprintf("a unix socket has no %s, which the command asks for in %s", placeholder, quote(argument))
				return c.faultAt("workers.transport", what, "{addr} in the command, or transport tcp")
			}
		}
	}
	return nil
}

func (c *Config) enoughWorkers([]string) *Fault {
	endpoints, key := c.endpoints()
	if c.Workers.MinReady <= endpoints {
		return nil
	}
	what := fmt.Sprintf("%d can never be ready: %s gives %d (%s)", c.Workers.MinReady, key, endpoints, c.origins[key])
	return c.faultAt("workers.min_ready", what, fmt.Sprintf("1 to %d", endpoints))
}

func (c *Config) replayFits([]string) *Fault {
	if c.ReplayBytes <= c.BufferTotal {
		return nil
	}
	what := fmt.Sprintf("%v for one call is above buffer_total, %v for all (%s)", c.ReplayBytes, c.BufferTotal, c.origins["buffer_total"])
	return c.faultAt("replay_bytes", what, "0 to "+c.BufferTotal.String())
}

func (c *Config) absorbFits([]string) *Fault {
	if c.AbsorbBytes <= c.BufferTotal {
		return nil
	}
	what := fmt.Sprintf("%v for one call is above buffer_total, %v for all (%s)", c.AbsorbBytes, c.BufferTotal, c.origins["buffer_total"])
	return c.faultAt("absorb_bytes", what, "0 to "+c.BufferTotal.String())
}

func (c *Config) windowGrows([]string) *Fault {
	if c.Limits.Window <= c.Limits.MaxWindow {
		return nil
	}
	what := fmt.Sprintf("%v for a call that waits is above limits.max_window, %v for one that runs (%s)",
		c.Limits.Window, c.Limits.MaxWindow, c.origins["limits.max_window"])
	return c.faultAt("limits.window", what, "16KiB to "+c.Limits.MaxWindow.String())
}

// windowFits sees to it that one call alone, sending what it may before it has a
// slot, is not refused for it (R11).
func (c *Config) windowFits([]string) *Fault {
	if c.Limits.Window <= c.Limits.Buffer {
		return nil
	}
	what := fmt.Sprintf("%v for all calls of a connection is below limits.window, %v for one that waits (%s)",
		c.Limits.Buffer, c.Limits.Window, c.origins["limits.window"])
	return c.faultAt("limits.buffer_per_connection", what, c.Limits.Window.String()+" to 16GiB")
}

// listener is one of cabrank's own listeners.
type listener struct {
	key  string
	host string
	port int
}

// listeners returns those that will be opened on a port that is known before.
func (c *Config) listeners() []listener {
	all := []listener{{"server.port", c.Server.Host, c.Server.Port}}
	if c.Probes.Enabled {
		all = append(all, listener{"probes.port", c.Probes.Host, c.Probes.Port})
	}
	if c.Metrics.Enabled {
		all = append(all, listener{"metrics.port", c.Metrics.Host, c.Metrics.Port})
	}
	fixed := all[:0]
	for _, l := range all {
		if l.port != 0 {
			fixed = append(fixed, l)
		}
	}
	return fixed
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
			faults = append(faults, *c.faultAt(l.key, what, "a port of its own, or 0"))
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

// workerPorts checks the ports that workers are given: start_port and up for
// calls (tcp only), the same plus 100 for their metrics pages.
func (c *Config) workerPorts() Faults {
	first, count := c.Workers.StartPort, c.Workers.Count
	highest := first + workerMetricsOffset + count - 1
	if highest > maxPort {
		what := fmt.Sprintf("%d leaves no room for %d workers: the last metrics port would be %d", first, count, highest)
		allowed := fmt.Sprintf("1 to %d", maxPort-workerMetricsOffset-count+1)
		return Faults{*c.faultAt("workers.start_port", what, allowed)}
	}
	tcp := c.Workers.Transport == "tcp"
	if tcp && count > maxPortSpan {
		what := fmt.Sprintf("%d workers on tcp run into their own metrics ports, %d above", count, workerMetricsOffset)
		return Faults{*c.faultAt("workers.count", what, fmt.Sprintf("1 to %d, or workers.transport unix", maxPortSpan))}
	}
	var faults Faults
	for _, l := range c.listeners() {
		if use := portUse(l.port, first, count, tcp); use != "" {
			what := fmt.Sprintf("%d is among the workers' %s (workers.start_port %d, %s)", l.port, use, first, c.origins["workers.start_port"])
			faults = append(faults, *c.faultAt(l.key, what, "a port outside them"))
		}
	}
	return faults
}

// portUse names the range of worker ports that a port lies in, or "".
func portUse(port, first, count int, tcp bool) string {
	within := func(low int) bool { return port >= low && port < low+count }
	switch {
	case tcp && within(first):
		return fmt.Sprintf("ports %d to %d", first, first+count-1)
	case within(first + workerMetricsOffset):
		low := first + workerMetricsOffset
		return fmt.Sprintf("metrics ports %d to %d", low, low+count-1)
	}
	return ""
}
