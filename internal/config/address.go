package config

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"unicode"
)

// maxPort is the highest TCP port.
const maxPort = 65535

// maxSocketPath is the longest path of a unix socket that every platform
// takes, in bytes (R19).
const maxSocketPath = 100

// cleanHost accepts a name or an address without a port. Brackets around an
// IPv6 address are dropped.
func cleanHost(host string) (string, error) {
	if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		host = host[1 : len(host)-1]
	}
	odd := strings.ContainsAny(host, " /@[],\"")
	if strings.Contains(host, ":") {
		address, _, _ := strings.Cut(host, "%") // a zone may follow
		odd = net.ParseIP(address) == nil
	}
	return host, wrong(quote(host), flaw{odd || strings.ContainsFunc(host, unicode.IsControl), "is not a host"})
}

// readNetwork accepts an address or a network.
func readNetwork(text string) (netip.Prefix, error) {
	network, err := netip.ParsePrefix(text)
	if a, notOne := netip.ParseAddr(text); err != nil && notOne == nil {
		network, err = netip.PrefixFrom(a.WithZone(""), a.BitLen()), nil
	}
	const mapped = 96 // bits before an IPv4 address in the form of IPv6
	if a := network.Addr(); a.Is4In6() && network.Bits() >= mapped {
		network = netip.PrefixFrom(a.Unmap(), network.Bits()-mapped)
	}
	return network.Masked(), wrong(quote(text), flaw{err != nil, "is neither an address nor a network"})
}

// cleanPath accepts the path of a page.
func cleanPath(path string) (string, error) {
	return path, wrong(quote(path), flaw{!strings.HasPrefix(path, "/"), "does not begin with /"}, flaw{!forms["path"].MatchString(path), "is not a plain path"})
}

// checkSocketPath looks at the path of a unix socket that is written so.
func checkSocketPath(written, path string) error {
	return wrong(quote(written),
		flaw{path == "" || strings.HasSuffix(path, "/"), "is not the path of a socket"},
		flaw{strings.ContainsFunc(path, unicode.IsControl), "has a control character"},
		flaw{len(path) > maxSocketPath, fmt.Sprintf("has a path of more than %d bytes", maxSocketPath)})
}

// splitHostPort takes HOST:PORT apart; HOST may be empty, PORT is 0 to 65535.
func splitHostPort(address string) (host string, port int, err error) {
	name, number, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, fmt.Errorf("%s is not HOST:PORT", quote(address))
	}
	host, err = cleanHost(name)
	port, notNumber := strconv.Atoi(number)
	odd := notNumber != nil || port < 0 || port > maxPort
	return host, port, cmp.Or(err, wrong(quote(address), flaw{odd, fmt.Sprintf("has no port from 0 to %d", maxPort)}))
}

// cleanControl accepts where the control socket is. A word without a slash is
// more likely a slip than the name of a file.
func cleanControl(path string) (string, error) {
	if path == automatic || path == off {
		return path, nil
	}
	return path, cmp.Or(wrong(quote(path), flaw{!strings.Contains(path, "/"), "is not the path of a socket"}), checkSocketPath(path, path))
}
