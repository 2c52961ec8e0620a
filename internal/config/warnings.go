package config

import (
	"fmt"
	"slices"

	"github.com/cabrank/cabrank/internal/callers"
)

// warnings tells of settings that someone wrote and that other settings make idle, which
// are no faults: a file may be tried with another policy; and of what works in another way
// than people may think.
func (c *Config) warnings() (all []string) {
	idle := func(so bool, key, reason, because string) {
		if origin, written := c.origins[key]; written && so {
			all = append(all, fmt.Sprintf("%s: %s has no effect: %s (%s)", origin, key, reason, c.origins[because]))
		}
	}
	oneCaller, noSockets := c.Fair.Key.By == callers.ByNothing, len(c.Socket.Paths) == 0
	const one, without = "fair.key is none, so that all callers are one", "there are no sockets, socket.path is none"
	idle(oneCaller && len(c.Fair.Weights) > 0, "fair.weights", one, "fair.key")
	idle(!c.SecureUpstreams(), "upstream_tls", "no upstream begins with tls:", "upstreams")
	for _, lane := range c.Lanes {
		idle(oneCaller && len(lane.Keys) > 0, entryPath("lanes", lane.Name)+".keys", one, "fair.key")
	}
	for _, key := range Keys() {
		section := parent(key.Name)
		idle(isForWorkers(key) && !c.RunsWorkers(), key.Name, "there are upstreams and no command, so that no workers run", "upstreams")
		idle(section == "dns" && !slices.ContainsFunc(c.Upstreams, IsName), key.Name, "no upstream begins with dns: or srv:", "upstreams")
		if key.Name != "socket.path" && key.Name != "socket.redis" { // the variable is also there for other commands
			idle(section == socketSection && noSockets, key.Name, without, "socket.path")
		}
	}
	idle(noSockets && !c.Auth.AllDoors(), "auth", without, "socket.path")
	if slots, reason, known := c.allSlots(); known && slots == 1 { // so that none can be kept from streams
		all = append(all, "one slot in all ("+reason+"): a stream that stays open keeps all other calls waiting")
	}
	if !noSockets && c.Auth.IsOn() && !c.Auth.AllDoors() && !isOwnHost(c.Listen.Host) {
		all = append(all, fmt.Sprintf("%s: auth is for sockets alone: calls over gRPC at %s need no token", c.origins["auth"], c.Listen.Addr()))
	}
	return all
}

// isForWorkers reports whether a key is about nothing but workers of our own.
func isForWorkers(key Key) bool {
	switch key.Name {
	case "workers.slots", "workers.min_ready": // of upstreams, too
		return false
	case "max_run_time", "hang_timeout", "hooks", "warm_up":
		return true
	}
	return slices.Contains([]string{"workers", "recycle"}, parent(key.Name))
}
