package config

import (
	"fmt"
	"math"
)

// endpoints returns how many there are, and the key that says so.
func (c *Config) endpoints() (count int, key string) {
	if len(c.Upstreams) > 0 {
		return len(c.Upstreams), "upstreams"
	}
	return c.Workers.Count, "workers.count"
}

// allSlots returns the most slots that all endpoints together may have, and how
// that number comes about.
func (c *Config) allSlots() (count int, reason string) {
	endpoints, key := c.endpoints()
	each, name := c.Workers.PoolSize, "workers.pool_size"
	if c.Workers.AutoSlots {
		each, name = c.Workers.SlotsMax, "workers.slots_max"
	}
	return endpoints * each, fmt.Sprintf("%s %d x %s %d", key, endpoints, name, each)
}

func (c *Config) slotsGrow([]string) *Fault {
	if c.Workers.SlotsMin <= c.Workers.SlotsMax {
		return nil
	}
	what := fmt.Sprintf("%d is above workers.slots_max, %d (%s)", c.Workers.SlotsMin, c.Workers.SlotsMax, c.origins["workers.slots_max"])
	return c.faultAt("workers.slots_min", what, fmt.Sprintf("1 to %d", c.Workers.SlotsMax))
}

func (c *Config) streamSlotsFit([]string) *Fault {
	all, reason := c.allSlots()
	if c.StreamSlots <= all {
		return nil
	}
	what := fmt.Sprintf("%d is more than all slots, %d (%s)", c.StreamSlots, all, reason)
	return c.faultAt("stream_slots", what, fmt.Sprintf("1 to %d, or %s", all, automatic))
}

func (c *Config) ringHasKey([]string) *Fault {
	if c.Balance != ringHash || c.BalanceKey != "" {
		return nil
	}
	return c.faultAt("balance", "ring_hash needs balance_key, what it hashes", "balance_key: a header or metadata key")
}

// shortestBurst is the part of a second whose calls one caller must be able to
// start at once: below it a rate is a gap between calls, and refuses callers
// who are far slower on average.
const shortestBurst = 0.01

func (c *Config) burstFits([]string) *Fault {
	least := int(math.Ceil(c.Limits.RatePerKey * shortestBurst))
	if c.Limits.BurstPerKey == 0 || c.Limits.BurstPerKey >= least {
		return nil
	}
	what := fmt.Sprintf("%d is less than limits.rate_per_key, %s a second (%s), brings in 10ms",
		c.Limits.BurstPerKey, showDecimal(c.Limits.RatePerKey), c.origins["limits.rate_per_key"])
	return c.faultAt("limits.burst_per_key", what, fmt.Sprintf("%d to 1000000, or %s", least, automatic))
}

// withoutEffect warns of settings that someone wrote and that other settings
// make idle. They are no faults: a file may be tried with another policy.
func (c *Config) withoutEffect() []string {
	var warnings []string
	idle := func(is bool, key, reason, because string) {
		if _, written := c.origins[key]; written && is {
			warnings = append(warnings, fmt.Sprintf("%s: %s has no effect: %s (%s)", c.origins[key], key, reason, c.origins[because]))
		}
	}
	idle(c.Balance != ringHash && c.BalanceKey != "", "balance_key", "only ring_hash uses it, and balance is "+c.Balance, "balance")
	fixed := fmt.Sprintf("workers.pool_size is %d and not auto", c.Workers.PoolSize)
	idle(!c.Workers.AutoSlots, "workers.slots_min", fixed, "workers.pool_size")
	idle(!c.Workers.AutoSlots, "workers.slots_max", fixed, "workers.pool_size")
	idle(c.Limits.RatePerKey == 0 && c.Limits.BurstPerKey > 0, "limits.burst_per_key", "limits.rate_per_key is 0", "limits.rate_per_key")
	return warnings
}
