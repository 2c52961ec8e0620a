package door

import (
	"net/netip"
	"strings"
)

// mostForwarded is how many entries of x-forwarded-for are looked at: one for each proxy
// that a call has come through. Behind that nobody is believed.
const mostForwarded = 32

// Proxies are peers that are believed when they say whose a request is.
type Proxies []netip.Prefix

// Has reports whether an address is in one of these networks. Other text is not.
func (p Proxies) Has(address string) bool {
	if len(p) == 0 {
		return false
	}
	a, ok := addressOf(address)
	return ok && p.has(a)
}

func (p Proxies) has(a netip.Addr) bool {
	for _, prefix := range p {
		if prefix.Contains(a) {
			return true
		}
	}
	return false
}

// Caller returns the caller that an x-forwarded-for names, and the entries before it: the last
// entry that is not a proxy. It is not ok if all are proxies, or if an entry behind the caller
// is not an address: then the peer itself is the caller.
//
// Shape: addresses with commas between them, each with a port or without, IPv6 in
// brackets or not. An IPv4 address in the form of IPv6 is that of IPv4.
func (p Proxies) Caller(list string) (caller, before string, ok bool) {
	for range mostForwarded {
		at := strings.LastIndexByte(list, ',')
		a, isAddress := addressOf(strings.TrimSpace(list[at+1:]))
		switch {
		case !isAddress:
			return "", "", false
		case !p.has(a):
			return a.String(), strings.TrimSpace(list[:max(at, 0)]), true
		case at < 0:
			return "", "", false
		}
		list = list[:at]
	}
	return "", "", false
}

// addressOf reads an address with a port or without.
func addressOf(entry string) (netip.Addr, bool) {
	a, err := netip.ParseAddr(entry)
	if err != nil {
		var port netip.AddrPort
		port, err = netip.ParseAddrPort(entry)
		a = port.Addr()
	}
	if inside, bare := strings.CutSuffix(entry, "]"); err != nil && bare {
		a, err = netip.ParseAddr(strings.TrimPrefix(inside, "["))
	}
	return a.Unmap().WithZone(""), err == nil
}
