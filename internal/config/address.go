package config

import (
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
	address, _, _ := strings.Cut(host, "%") // a zone may follow
	isAddress := strings.Contains(host, ":")
	if isAddress && net.ParseIP(address) == nil || !isAddress && strings.ContainsAny(host, " /@[],\"") || strings.ContainsFunc(host, unicode.IsControl) {
		return "", fmt.Errorf("%s is not a host", quote(host))
	}
	return host, nil
}

// readNetwork accepts an address or a network.
func readNetwork(text string) (netip.Prefix, error) {
	network, err := netip.ParsePrefix(text)
	if a, notOne := netip.ParseAddr(text); err != nil && notOne == nil {
		network, err = netip.PrefixFrom(a.WithZone(""), a.BitLen()), nil
	}
	if err != nil {
		return network, fmt.Errorf("%s is neither an address nor a network", quote(text))
	}
	const mapped = 96 // bits before an IPv4 address in the form of IPv6
	if a := network.Addr(); a.Is4In6() && network.Bits() >= mapped {
		network = netip.PrefixFrom(a.Unmap(), network.Bits()-mapped)
	}
	return network.Masked(), nil
}

// cleanPath accepts the path of a page.
func cleanPath(path string) (string, error) {
	if !strings.HasPrefix(path, "/") {
		return "", fmt.Errorf("%s does not begin with /", quote(path))
	}
	return formed("path", "%s is not a plain path")(path)
}

// checkSocketPath looks at the path of a unix socket that is written so.
func checkSocketPath(written, path string) error {
	switch {
	case path == "" || strings.HasSuffix(path, "/"):
		return fmt.Errorf("%s is not the path of a socket", quote(written))
	case strings.ContainsFunc(path, unicode.IsControl):
		return fmt.Errorf("%s has a control character", quote(written))
	case len(path) > maxSocketPath:
		return fmt.Errorf("%s has a path of more than %d bytes", quote(written), maxSocketPath)
	}
	return nil
}

// splitHostPort takes HOST:PORT apart; HOST may be empty, PORT is 0 to 65535.
func splitHostPort(address string) (host string, port int, err error) {
	name, number, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, fmt.Errorf("%s is not HOST:PORT", quote(address))
	}
	if host, err = cleanHost(name); err != nil {
		return "", 0, err
	}
	if port, err = strconv.Atoi(number); err != nil || port < 0 || port > maxPort {
		return "", 0, fmt.Errorf("%s has no port from 0 to %d", quote(address), maxPort)
	}
	return host, port, nil
}

// cleanControl accepts where the control socket is. A word without a slash is
// more likely a slip than the name of a file.
func cleanControl(path string) (string, error) {
	switch {
	case path == automatic || path == off:
		return path, nil
	case !strings.Contains(path, "/"):
		return "", fmt.Errorf("%s is not the path of a socket", quote(path))
	}
	return path, checkSocketPath(path, path)
}
