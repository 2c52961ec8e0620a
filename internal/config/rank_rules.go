package config

import (
	"fmt"
	"slices"

	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/relay"
)

// allSlots returns the most slots that all endpoints together may have, and how
// that number comes about; known is false if that depends on what a name
// resolves to.
func (c *Config) allSlots() (count int, reason string, known bool) {
	endpoints, key, known := c.endpoints(c.Workers.Count.Most())
	each := c.Workers.Slots.Most()
	return endpoints * each, fmt.Sprintf("%s %d x workers.slots %d", key, endpoints, each), known
}

func (c *Config) streamSlotsFit() *Fault {
	all, reason, known := c.allSlots()
	if !known || c.StreamSlots <= all {
		return nil
	}
	what := fmt.Sprintf("%d is more than all slots, %d (%s)", c.StreamSlots, all, reason)
	return c.faultAt("stream_slots", what, fmt.Sprintf("1 to %d, or %s", all, automatic))
}

// reservesFit sees to it that calls in no lane can be served.
func (c *Config) reservesFit() Faults {
	all, reason, known := c.allSlots()
	if !known {
		return nil
	}
	var faults Faults
	sum := 0
	for _, lane := range c.Lanes {
		if lane.Reserve > 0 && sum+lane.Reserve >= all {
			what := fmt.Sprintf("%d leaves no slot for other calls: lanes reserve %d of %d (%s)", lane.Reserve, sum+lane.Reserve, all, reason)
			faults = append(faults, *c.faultAt(entryPath("lanes", lane.Name)+".reserve", what, fmt.Sprintf("0 to %d", max(0, all-1-sum))))
			continue
		}
		sum += lane.Reserve
	}
	return faults
}

// losersCanStop refuses hedges whose slower attempt would run to its end: each
// would take two slots for the time of one.
func (c *Config) losersCanStop() Faults {
	var faults Faults
	for _, rule := range c.Methods {
		policy, key := rule.OnCancel, entryPath("methods", rule.Pattern)+".on_cancel"
		if policy == 0 {
			policy, key = c.OnCancel, "on_cancel"
		}
		if !rule.Hedged() || policy != rank.Finish {
			continue
		}
		what := fmt.Sprintf("%s needs its slower attempt cancelled, which %s: finish forbids (%s)", showHedge(rule.HedgeAfter), key, c.origins[key])
		faults = append(faults, *c.faultAt(entryPath("methods", rule.Pattern)+".hedge_after", what, "none, or on_cancel: hold or free beside it"))
	}
	return faults
}

// withoutEffect warns of settings that someone wrote and that other settings
// make idle. They are no faults: a file may be tried with another policy.
func (c *Config) withoutEffect() []string {
	const oneCaller = "fair.key is none, so that all callers are one"
	idle := []idleSetting{
		{c.Fair.Key.By == relay.ByNothing && len(c.Fair.Weights) > 0, "fair.weights", oneCaller, "fair.key"},
		{!c.SecureUpstreams(), "upstream_tls", "no upstream begins with tls:", "upstreams"},
	}
	for _, lane := range c.Lanes {
		path := entryPath("lanes", lane.Name)
		idle = append(idle, idleSetting{c.Fair.Key.By == relay.ByNothing && len(lane.Keys) > 0, path + ".keys", oneCaller, "fair.key"})
	}
	return append(c.warningsOf(slices.Concat(idle, c.workersWithoutEffect(), c.socketsOff())), c.oneSlot()...)
}

// oneSlot tells that no slot can be kept from streams.
func (c *Config) oneSlot() []string {
	if all, reason, known := c.allSlots(); !known || all != 1 {
		return nil
	} else {
		return []string{"one slot in all (" + reason + "): a stream that stays open keeps all other calls waiting"}
	}
}

// idleSetting is a key that has no effect if so, with the reason and the key
// behind it.
type idleSetting struct {
	so      bool
	key     string
	reason  string
	because string
}

func (c *Config) warningsOf(idle []idleSetting) []string {
	var warnings []string
	for _, s := range idle {
		if origin, written := c.origins[s.key]; written && s.so {
			warnings = append(warnings, fmt.Sprintf("%s: %s has no effect: %s (%s)", origin, s.key, s.reason, c.origins[s.because]))
		}
	}
	return warnings
}
