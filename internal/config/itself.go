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
		if err != nil || toPort != port || !reaches(to, host, local) {
			continue
		}
		what := fmt.Sprintf("%s is cabrank itself, which takes calls on %s (listen: %s)", upstream, door, c.origins["listen"])
		faults = append(faults, c.faultAt("upstreams", what, "addresses of others"))
	}
	if len(faults) == 0 {
		return nil
	}
	return faults
}

// reaches reports whether a connection to one host is taken by who listens on the other.
func reaches(to, host string, local []netip.Addr) bool {
	switch to {
	case host:
		return true
	case "0.0.0.0": // Linux connects to the loopback address of that kind
		to = "127.0.0.1"
	case "::":
		to = "::1"
	}
	target, err := hostAddress(to)
	on, unknown := hostAddress(cmp.Or(host, "::"))
	switch {
	case err != nil || unknown != nil:
		return false
	case on.IsUnspecified():
		return (target.IsLoopback() || slices.Contains(local, target)) && (on.Is6() || target.Is4()) // "::" takes both
	}
	return target == on
}

func hostAddress(host string) (netip.Addr, error) {
	if host == "localhost" {
		host = "127.0.0.1"
	}
	address, err := netip.ParseAddr(host)
	return address.Unmap().WithZone(""), err
}

// Written returns where a key was written, and false if it has its default.
func (c *Config) Written(key string) (Origin, bool) {
	origin, written := c.origins[key]
	return origin, written
}
