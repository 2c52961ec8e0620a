package config

import "fmt"

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
