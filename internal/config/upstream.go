package config

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
)

const (
	maxDNSName = 253 // bytes of a name (RFC 1035 2.3.4)
	dnsPort    = 53
)

// Marks of upstreams that are looked up: a name that has addresses, and one
// that has SRV records (RFC 2782); and before others of those that speak TLS.
const (
	dnsMark = "dns:"
	srvMark = "srv:"
	tlsMark = "tls:"
)

// IsName reports whether an upstream is looked up, so that it may be any number
// of endpoints.
func IsName(upstream string) bool {
	name := strings.TrimPrefix(upstream, tlsMark)
	return strings.HasPrefix(name, dnsMark) || strings.HasPrefix(name, srvMark)
}

// cleanUpstream accepts host:port, unix:/path, dns:name:port and srv:name, and tls:
// before what names a host.
//
// An address with an @ is refused without being repeated: what stands before
// it may be a password, and secrets never reach an output.
func cleanUpstream(address string) (string, error) {
	path, isPath := strings.CutPrefix(address, "unix:")
	name, secure := strings.CutPrefix(address, tlsMark)
	switch {
	case isPath:
		relative := flaw{!strings.HasPrefix(path, "/"), "needs an absolute path, such as unix:/run/worker.sock"}
		return address, cmp.Or(wrong(quote(address), relative), checkSocketPath(address, path))
	case strings.Contains(address, "@"):
		return "", errors.New("an address with user information (before the @) is refused")
	case secure && (strings.HasPrefix(name, tlsMark) || strings.HasPrefix(name, srvMark) || strings.HasPrefix(name, "unix:")):
		return "", fmt.Errorf("%s names no host whose certificate could be looked at", quote(address))
	case secure:
		name, err := cleanUpstream(name)
		return tlsMark + name, err
	case IsName(address):
		return cleanLookup(address)
	}
	host, port, err := upstreamHostPort(address)
	return joinHostPort(host, port), cmp.Or(wrong(quote(address), flaw{strings.Contains(address, "://"), "is a URL, not an address"}), err)
}

// upstreamHostPort takes an address apart of which both parts are needed.
func upstreamHostPort(address string) (host string, port int, err error) {
	host, port, err = splitHostPort(address)
	return host, port, cmp.Or(err, wrong(quote(address), flaw{host == "", "has no host"}, flaw{port == 0, "has port 0"}))
}

// cleanLookup accepts what is looked up; one name has one form.
func cleanLookup(address string) (string, error) {
	if service, isService := strings.CutPrefix(address, srvMark); isService {
		lower, err := cleanDNSName(service)
		return srvMark + lower, cmp.Or(wrong(quote(address), flaw{strings.Contains(service, ":"), "has a port, and SRV records have their own"}), err)
	}
	name := strings.TrimPrefix(address, dnsMark)
	rest, slashed := strings.CutPrefix(name, "///") // as gRPC clients write targets
	host, port, err := upstreamHostPort(name)
	_, isName := netip.ParseAddr(host)
	lower, odd := cleanDNSName(host)
	return dnsMark + joinHostPort(lower, port), cmp.Or(wrong(quote(address),
		flaw{slashed, "has slashes; did you mean " + dnsMark + rest + "?"},
		flaw{!strings.Contains(name, ":"), "has no port, as in " + address + ":50051"},
		flaw{err == nil && isName == nil, "is an address, not a name; did you mean " + joinHostPort(host, port) + "?"}), err, odd)
}

// cleanDNSName accepts the name of a host or of a service, in any case, and with
// or without the dot at its end that makes it absolute.
func cleanDNSName(name string) (string, error) {
	lower := strings.ToLower(name)
	return lower, wrong(quote(name), flaw{len(name) > maxDNSName, fmt.Sprintf("is longer than %d characters", maxDNSName)},
		flaw{!forms["name"].MatchString(lower), "is not a name that can be looked up"})
}

// cleanNameServer accepts the address of a name server: a name would have to be
// looked up first.
func cleanNameServer(text string) (string, error) {
	if address, err := netip.ParseAddr(strings.Trim(text, "[]")); err == nil {
		return netip.AddrPortFrom(address, dnsPort).String(), nil
	}
	server, err := netip.ParseAddrPort(text)
	if err != nil || server.Port() == 0 {
		return "", fmt.Errorf("%s is not the address of a name server", quote(text))
	}
	return server.String(), nil
}

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
