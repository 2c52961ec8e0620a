package config

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
)

// UpstreamItself looks for upstreams that are the port on which this process takes
// calls, at door ("host:port"): each call would come back until its hops are spent (R10).
// local are the addresses of this machine. What a name resolves to is not known here.
//
// Errors: Faults, one for each such upstream.
func (c *Config) UpstreamItself(door string, local []netip.Addr) error {
	host, port, _ := net.SplitHostPort(door) // of a listener, or made of host and port
	if port == "0" {
		return nil // not known before it listens
	}
	var faults Faults
	for _, upstream := range c.Upstreams {
		to, toPort, err := net.SplitHostPort(strings.TrimPrefix(upstream, tlsMark)) // fails for a path, and for a name with its mark
		if err == nil && toPort == port && reaches(to, host, local) {
			what := fmt.Sprintf("%s is cabrank itself, which takes calls on %s (listen: %s)", upstream, door, c.origins["listen"])
			faults = append(faults, c.FaultAt("upstreams", what, "addresses of others"))
		}
	}
	if len(faults) == 0 {
		return nil
	}
	return faults
}

// reaches reports whether a connection to one host is taken by who listens on the other.
func reaches(to, host string, local []netip.Addr) bool {
	loopback := map[string]string{"localhost": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"} // Linux connects to that of the kind
	target, err := netip.ParseAddr(cmp.Or(loopback[to], to))
	if host == "localhost" {
		host = loopback[host]
	}
	on, unknown := netip.ParseAddr(cmp.Or(host, "::"))
	target, on = target.Unmap().WithZone(""), on.Unmap().WithZone("")
	switch {
	case err != nil || unknown != nil:
		return to == host
	case on.IsUnspecified():
		return (target.IsLoopback() || slices.Contains(local, target)) && (on.Is6() || target.Is4()) // "::" takes both
	}
	return target == on
}
