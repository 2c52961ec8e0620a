package config

import (
	"fmt"
	"slices"

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

// slotRules see to it that there are the slots that streams and lanes may have, and some for
// calls in no lane.
func (c *Config) slotRules() []rule {
	all, reason, known := c.allSlots()
	if !known {
		return nil
	}
	rules := []rule{{
		c.StreamSlots > all, "stream_slots",
		fmt.Sprintf("%d is more than all slots, %d (%s)", c.StreamSlots, all, reason), fmt.Sprintf("1 to %d, or %s", all, automatic),
	}}
	sum := 0
	for _, lane := range c.Lanes {
		tooMuch := lane.Reserve > 0 && sum+lane.Reserve >= all
		rules = append(rules, rule{
			tooMuch, entryPath("lanes", lane.Name) + ".reserve",
			fmt.Sprintf("%d leaves no slot for other calls: lanes reserve %d of %d (%s)", lane.Reserve, sum+lane.Reserve, all, reason),
			fmt.Sprintf("0 to %d", max(0, all-1-sum)),
		})
		if !tooMuch {
			sum += lane.Reserve
		}
	}
	return rules
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
