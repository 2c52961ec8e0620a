package config

import (
	"fmt"
	"slices"
	"strings"
)

// refuse tells of a value that is right alone and wrong beside others, if it is broken.
type refuse func(broken bool, key, what, allowed string)

func refusing(fault func(key, what, allowed string)) refuse {
	return func(broken bool, key, what, allowed string) {
		if broken {
			fault(key, what, allowed)
		}
	}
}

func (c *Config) refuseInto(faults *Faults) refuse {
	return refusing(func(key, what, allowed string) { *faults = append(*faults, c.FaultAt(key, what, allowed)) })
}

// contradictions looks for values that are right alone and wrong together.
func (c *Config) contradictions() Faults {
	faults := c.placeholdersFit()
	refuse := c.refuseInto(&faults)
	c.workerRules(refuse)
	c.slotRules(refuse)
	c.authRules(refuse)
	c.tlsRules(refuse)
	c.sharedPorts(refuse)
	c.workerPorts(refuse)
	c.hedgeRules(refuse)
	c.methodsOfLanes(refuse)
	return append(faults, c.tidyCallers()...)
}

// RunsWorkers reports whether cabrank starts workers of its own: always, unless
// there are upstreams and nobody gave a command.
func (c *Config) RunsWorkers() bool { return len(c.Command) > 0 }

// endpoints returns how many there are beside so many workers, and the key that
// says so; known is false if that depends on what a name resolves to.
func (c *Config) endpoints(workers int) (count int, key string, known bool) {
	known = !slices.ContainsFunc(c.Upstreams, IsName)
	if !c.RunsWorkers() {
		return len(c.Upstreams), "upstreams", known
	}
	return workers + len(c.Upstreams), "workers.count", known
}

// allSlots returns the most slots that all endpoints together may have, and how
// that number comes about; known is false if that depends on what a name
// resolves to.
func (c *Config) allSlots() (count int, reason string, known bool) {
	endpoints, key, known := c.endpoints(c.Workers.Count.Most())
	each := c.Workers.Slots.Most()
	return endpoints * each, fmt.Sprintf("%s %d x workers.slots %d", key, endpoints, each), known
}

// workerRules see to it that upstreams are named once, that enough can be ready, and that a
// roll can begin: either with one worker more, or with one less.
func (c *Config) workerRules(refuse refuse) {
	w, least, others := c.Workers, c.Workers.Count.Least(), ""
	for i, upstream := range c.Upstreams {
		refuse(slices.Contains(c.Upstreams[:i], upstream), "upstreams", quote(upstream)+" is there twice", "each once")
	}
	endpoints, key, known := c.endpoints(least)
	if key != "upstreams" && len(c.Upstreams) > 0 {
		others = " with the upstreams"
	}
	refuse(known && w.MinReady > endpoints, "workers.min_ready",
		fmt.Sprintf("%d can never be ready: %s gives %d%s (%s)", w.MinReady, key, endpoints, others, c.origins[key]), fmt.Sprintf("1 to %d", endpoints))
	refuse(c.RunsWorkers() && w.MaxSurge == 0 && w.MinReady >= least, "workers.max_surge",
		fmt.Sprintf("0 lets no roll begin: workers.min_ready %d (%s) is all of workers.count %d", w.MinReady, c.origins["workers.min_ready"], least),
		fmt.Sprintf("1 to %d, or less min_ready", maxWorkers))
	refuse(c.WarmUp.Method == "" && len(c.WarmUp.Message) > 0, "warm_up", "has a message for no method", "a method beside it")
}

// slotRules see to it that there are the slots that streams and lanes may have, and some for
// calls in no lane.
func (c *Config) slotRules(refuse refuse) {
	all, reason, known := c.allSlots()
	refuse(known && c.StreamSlots > all, "stream_slots",
		fmt.Sprintf("%d is more than all slots, %d (%s)", c.StreamSlots, all, reason), fmt.Sprintf("1 to %d, or %s", all, automatic))
	sum := 0
	for _, lane := range c.Lanes {
		with := sum + lane.Reserve
		tooMuch := known && lane.Reserve > 0 && with >= all
		refuse(tooMuch, entryPath("lanes", lane.Name)+".reserve",
			fmt.Sprintf("%d leaves no slot for other calls: lanes reserve %d of %d (%s)", lane.Reserve, with, all, reason), fmt.Sprintf("0 to %d", max(0, all-1-sum)))
		if !tooMuch {
			sum = with
		}
	}
}

// tlsRules see to it that certificates are whole, and that who has to show one cannot come
// without TLS.
func (c *Config) tlsRules(refuse refuse) {
	clients, peer := c.TLSClient, c.UpstreamTLS
	asks := clients.CA != ""
	refuse(!asks && (clients.Required || len(clients.Names) > 0), "tls_client", "has no ca", "ca: the file of who signs callers' certificates")
	refuse(asks && len(c.TLS) == 0, "tls_client", "asks callers for certificates, and the port serves no TLS", "with tls")
	refuse(asks && clients.Required && len(c.TLS) > 0 && c.ServesClear(), "tls_clear", "lets callers in without the certificate that tls_client requires", "refuse")
	refuse((peer.Cert == "") != (peer.Key == ""), "upstream_tls", "has one of cert and key", "both or none")
	for i, pair := range c.TLS {
		refuse(pair.Cert == "" || pair.Key == "", fmt.Sprintf("tls[%d]", i), "has no cert, or no key", "both")
	}
}

// SecureUpstreams reports whether any upstream speaks TLS.
func (c *Config) SecureUpstreams() bool {
	return slices.ContainsFunc(c.Upstreams, func(upstream string) bool { return strings.HasPrefix(upstream, tlsMark) })
}

// ServesClear reports whether callers without TLS are served.
func (c *Config) ServesClear() bool { return len(c.TLS) == 0 || c.TLSClear == "allow" }

// listener is one of cabrank's own listeners.
type listener struct {
	key string
	Listener
}

// listeners returns those that will be opened on a port that is known before.
func (c *Config) listeners() []listener {
	all := []listener{{"listen", c.Listen}, {"probes", c.Probes}, {"metrics", c.Metrics.Listener}}
	if len(c.Socket.Paths) > 0 {
		all = append(all, listener{"socket.push", c.Socket.Push})
	}
	return slices.DeleteFunc(all, func(l listener) bool { return !l.On || l.Port == 0 })
}

// sharedPorts are those of two listeners that would be in each other's way. Two names of
// one address are left to the bind to find out.
func (c *Config) sharedPorts(refuse refuse) {
	every := []string{"", "0.0.0.0", "::"}
	all := c.listeners()
	for i, l := range all {
		for _, other := range all[:i] {
			meet := l.Host == other.Host || slices.Contains(every, l.Host) || slices.Contains(every, other.Host)
			refuse(meet && l.Port == other.Port, l.key, fmt.Sprintf("%d is also %s (%s)", l.Port, other.key, c.origins[other.key]), "a port of its own, or 0")
		}
	}
}

// workerPorts checks the ports that workers are given: start_port and up for
// calls (tcp only), the same plus 100 for their metrics pages. The spares of a
// roll have ports, too.
func (c *Config) workerPorts(refuse refuse) {
	if !c.RunsWorkers() {
		return
	}
	first, most, surge := c.Workers.StartPort, c.Workers.Count.Most(), c.Workers.MaxSurge
	count, workers := most+surge, fmt.Sprintf("%d workers", most)
	if surge > 0 {
		workers += fmt.Sprintf(" and %d more in a roll", surge)
	}
	highest, tcp := first+maxPortSpan+count-1, c.Workers.Transport == "tcp"
	meet := fmt.Sprintf("%s on tcp run into their own metrics ports, %d above", workers, maxPortSpan)
	switch {
	case highest > maxPort:
		what := fmt.Sprintf("%d leaves no room for %s: the last metrics port would be %d", first, workers, highest)
		refuse(true, "workers.start_port", what, fmt.Sprintf("1 to %d", maxPort-maxPortSpan-count+1))
	case tcp && surge >= maxPortSpan: // no number of workers would fit
		refuse(true, "workers.max_surge", meet, fmt.Sprintf("0 to %d, or workers.transport unix", maxPortSpan-1))
	case tcp && count > maxPortSpan:
		refuse(true, "workers.count", meet, fmt.Sprintf("1 to %d, or workers.transport unix", maxPortSpan-surge))
	default:
		for _, l := range c.listeners() {
			for name, low := range map[string]int{"ports": first, "metrics ports": first + maxPortSpan} {
				what := fmt.Sprintf("%d is among the workers' %s %d to %d (workers.start_port %d, %s)", l.Port, name, low, low+count-1, first, c.origins["workers.start_port"])
				refuse((tcp || low > first) && l.Port >= low && l.Port < low+count, l.key, what, "a port outside them")
			}
		}
	}
}
