package handover

import (
	"net"
	"net/netip"
	"strconv"
)

// SameAddress reports whether a socket that is bound to addr is the one that a
// configuration asks for: by a path for unix, by "host:port" for tcp, where all
// spellings of "every interface" are the same. Port 0 asks for any port.
func SameAddress(addr net.Addr, asked string) bool {
	switch addr := addr.(type) {
	case *net.UnixAddr:
		return addr.Name == asked
	case *net.TCPAddr:
		return sameTCP(addr.AddrPort(), asked)
	}
	return false
}

func sameTCP(bound netip.AddrPort, asked string) bool {
	host, number, err := net.SplitHostPort(asked)
	if err != nil {
		return false
	}
	port, err := strconv.ParseUint(number, 10, 16)
	if err != nil || port != 0 && port != uint64(bound.Port()) {
		return false
	}
	ip := bound.Addr().Unmap()
	switch host {
	case "":
		return ip.IsUnspecified()
	case "localhost":
		return ip.IsLoopback()
	}
	want, err := netip.ParseAddr(host)
	if err != nil {
		return false // a name: only the texts can be compared
	}
	return want.IsUnspecified() && ip.IsUnspecified() || want.Unmap() == ip
}

// anyPort reports whether the system chooses the port of an address.
func anyPort(asked string) bool {
	_, port, err := net.SplitHostPort(asked)
	return err == nil && port == "0"
}
