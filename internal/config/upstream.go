package config

import (
	"errors"
	"fmt"
	"net/netip"
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
	case isPath && !strings.HasPrefix(path, "/"):
		return "", fmt.Errorf("%s needs an absolute path, such as unix:/run/worker.sock", quote(address))
	case isPath:
		return address, checkSocketPath(address, path)
	case strings.Contains(address, "@"):
		return "", errors.New("an address with user information (before the @) is refused")
	case secure && (strings.HasPrefix(name, tlsMark) || strings.HasPrefix(name, srvMark) || strings.HasPrefix(name, "unix:")):
		return "", fmt.Errorf("%s names no host whose certificate could be looked at", quote(address))
	case secure:
		name, err := cleanUpstream(name)
		return tlsMark + name, err
	case IsName(address):
		return cleanLookup(address)
	case strings.Contains(address, "://"):
		return "", fmt.Errorf("%s is a URL, not an address", quote(address))
	}
	host, port, err := upstreamHostPort(address)
	return joinHostPort(host, port), err
}

// upstreamHostPort takes an address apart of which both parts are needed.
func upstreamHostPort(address string) (host string, port int, err error) {
	host, port, err = splitHostPort(address)
	switch {
	case err != nil:
		return "", 0, err
	case host == "":
		return "", 0, fmt.Errorf("%s has no host", quote(address))
	case port == 0:
		return "", 0, fmt.Errorf("%s has port 0", quote(address))
	}
	return host, port, nil
}

// cleanLookup accepts what is looked up; one name has one form.
func cleanLookup(address string) (string, error) {
	name := strings.TrimPrefix(address, dnsMark)
	service, isService := strings.CutPrefix(address, srvMark)
	switch {
	case strings.HasPrefix(name, "///"): // as gRPC clients write targets
		return "", fmt.Errorf("%s has slashes; did you mean %s%s?", quote(address), dnsMark, name[len("///"):])
	case strings.Contains(service, ":") && isService:
		return "", fmt.Errorf("%s has a port, and SRV records have their own", quote(address))
	case isService:
		name, err := cleanDNSName(service)
		return srvMark + name, err
	case !strings.Contains(name, ":"):
		return "", fmt.Errorf("%s has no port, as in %s:50051", quote(address), address)
	}
	host, port, err := upstreamHostPort(name)
	if err != nil {
		return "", err
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return "", fmt.Errorf("%s is an address, not a name; did you mean %s?", quote(address), joinHostPort(host, port))
	}
	host, err = cleanDNSName(host)
	return dnsMark + joinHostPort(host, port), err
}

// cleanDNSName accepts the name of a host or of a service, in any case, and with
// or without the dot at its end that makes it absolute.
func cleanDNSName(name string) (string, error) {
	if len(name) > maxDNSName {
		return "", fmt.Errorf("%s is longer than %d characters", quote(name), maxDNSName)
	}
	lower := strings.ToLower(name)
	if !forms["name"].MatchString(lower) {
		return "", fmt.Errorf("%s is not a name that can be looked up", quote(name))
	}
	return lower, nil
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
