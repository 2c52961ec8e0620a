package config

import (
	"fmt"
	"slices"
)

// workerMetricsOffset is the distance from a worker's port to the port of its
// metrics page, as gruf-relay laid them out.
const workerMetricsOffset = maxPortSpan

// RunsWorkers reports whether cabrank starts workers of its own: always, unless
// there are upstreams and nobody gave a command.
func (c *Config) RunsWorkers() bool { return len(c.Command) > 0 }

// places says how many workers there may be at a time, for people.
func (c *Config) places(workers int) string {
	if c.Workers.MaxSurge == 0 {
		return fmt.Sprintf("%d workers", workers)
	}
	return fmt.Sprintf("%d workers and %d more in a roll", workers, c.Workers.MaxSurge)
}

// endpoints returns how many there are beside so many workers, and the key that
// says so; known is false if that depends on what a name resolves to.
func (c *Config) endpoints(workers int) (count int, key string, known bool) {
	known = !slices.ContainsFunc(c.Upstreams, IsName)
	if !c.RunsWorkers() {
		return len(c.Upstreams), "upstreams", known
	}
	return workers + len(c.Upstreams), "workers.count", known
}

// workerRules see to it that upstreams are named once, that enough can be ready, and that a
// roll can begin: either with one worker more, or with one less.
func (c *Config) workerRules() (rules []rule) {
	w, least := c.Workers, c.Workers.Count.Least()
	for i, upstream := range c.Upstreams {
		if slices.Contains(c.Upstreams[:i], upstream) {
			rules = append(rules, rule{true, "upstreams", quote(upstream) + " is there twice", "each once"})
			break
		}
	}
	endpoints, key, known := c.endpoints(least)
	others := ""
	if key != "upstreams" && len(c.Upstreams) > 0 {
		others = " with the upstreams"
	}
	return append(rules, rule{
		known && w.MinReady > endpoints, "workers.min_ready",
		fmt.Sprintf("%d can never be ready: %s gives %d%s (%s)", w.MinReady, key, endpoints, others, c.origins[key]), fmt.Sprintf("1 to %d", endpoints),
	}, rule{
		c.RunsWorkers() && w.MaxSurge == 0 && w.MinReady >= least, "workers.max_surge",
		fmt.Sprintf("0 lets no roll begin: workers.min_ready %d (%s) is all of workers.count %d", w.MinReady, c.origins["workers.min_ready"], least),
		fmt.Sprintf("1 to %d, or less min_ready", maxWorkers),
	}, rule{
		c.WarmUp.Method == "" && len(c.WarmUp.Message) > 0, "warm_up", "has a message for no method", "a method beside it",
	})
}

// workersWithoutEffect are the settings of workers, and of names, that others
// make idle.
func (c *Config) workersWithoutEffect() []idleSetting {
	const noWorkers = "there are upstreams and no command, so that no workers run"
	var idle []idleSetting
	for _, key := range Keys() {
		if isForWorkers(key) && !c.RunsWorkers() {
			idle = append(idle, idleSetting{true, key.Name, noWorkers, "upstreams"})
		}
		if key.section() == "dns" && !slices.ContainsFunc(c.Upstreams, IsName) {
			idle = append(idle, idleSetting{true, key.Name, "no upstream begins with dns: or srv:", "upstreams"})
		}
	}
	return idle
}

// isForWorkers reports whether a key is about nothing but workers of our own.
func isForWorkers(key Key) bool {
	switch key.Name {
	case "workers.slots", "workers.min_ready": // of upstreams, too
		return false
	case "max_run_time", "hang_timeout", "hooks", "warm_up":
		return true
	}
	return slices.Contains([]string{"workers", "recycle"}, key.section())
}

// workerPorts checks the ports that workers are given: start_port and up for
// calls (tcp only), the same plus 100 for their metrics pages. The spares of a
// roll have ports, too.
func (c *Config) workerPorts() Faults {
	if !c.RunsWorkers() {
		return nil
	}
	most := c.Workers.Count.Most()
	first, count := c.Workers.StartPort, most+c.Workers.MaxSurge
	highest := first + workerMetricsOffset + count - 1
	if highest > maxPort {
		what := fmt.Sprintf("%d leaves no room for %s: the last metrics port would be %d", first, c.places(most), highest)
		allowed := fmt.Sprintf("1 to %d", maxPort-workerMetricsOffset-count+1)
		return Faults{c.faultAt("workers.start_port", what, allowed)}
	}
	tcp := c.Workers.Transport == "tcp"
	if tcp && count > maxPortSpan {
		what := fmt.Sprintf("%s on tcp run into their own metrics ports, %d above", c.places(most), workerMetricsOffset)
		if c.Workers.MaxSurge >= maxPortSpan { // no number of workers would fit
			return Faults{c.faultAt("workers.max_surge", what, fmt.Sprintf("0 to %d, or workers.transport unix", maxPortSpan-1))}
		}
		return Faults{c.faultAt("workers.count", what, fmt.Sprintf("1 to %d, or workers.transport unix", maxPortSpan-c.Workers.MaxSurge))}
	}
	var faults Faults
	for _, l := range c.listeners() {
		if use := portUse(l.port, first, count, tcp); use != "" {
			what := fmt.Sprintf("%d is among the workers' %s (workers.start_port %d, %s)", l.port, use, first, c.origins["workers.start_port"])
			faults = append(faults, c.faultAt(l.key, what, "a port outside them"))
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
