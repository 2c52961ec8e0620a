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

// workerPorts checks the ports that workers are given: start_port and up for
// calls (tcp only), the same plus 100 for their metrics pages. The spares of a
// roll have ports, too.
func (c *Config) workerPorts() (rules []rule) {
	if !c.RunsWorkers() {
		return nil
	}
	first, most, surge := c.Workers.StartPort, c.Workers.Count.Most(), c.Workers.MaxSurge
	count := most + surge
	highest, tcp := first+workerMetricsOffset+count-1, c.Workers.Transport == "tcp"
	meet := fmt.Sprintf("%s on tcp run into their own metrics ports, %d above", c.places(most), workerMetricsOffset)
	switch {
	case highest > maxPort:
		what := fmt.Sprintf("%d leaves no room for %s: the last metrics port would be %d", first, c.places(most), highest)
		return []rule{{true, "workers.start_port", what, fmt.Sprintf("1 to %d", maxPort-workerMetricsOffset-count+1)}}
	case tcp && surge >= maxPortSpan: // no number of workers would fit
		return []rule{{true, "workers.max_surge", meet, fmt.Sprintf("0 to %d, or workers.transport unix", maxPortSpan-1)}}
	case tcp && count > maxPortSpan:
		return []rule{{true, "workers.count", meet, fmt.Sprintf("1 to %d, or workers.transport unix", maxPortSpan-surge)}}
	}
	for _, l := range c.listeners() {
		for name, low := range map[string]int{"ports": first, "metrics ports": first + workerMetricsOffset} {
			what := fmt.Sprintf("%d is among the workers' %s %d to %d (workers.start_port %d, %s)", l.Port, name, low, low+count-1, first, c.origins["workers.start_port"])
			rules = append(rules, rule{(tcp || low > first) && l.Port >= low && l.Port < low+count, l.key, what, "a port outside them"})
		}
	}
	return rules
}
