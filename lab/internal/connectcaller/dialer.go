package connectcaller

import (
	"net"
	"strings"
)

// place takes a target apart: what is dialed, and the host of the URL.
func place(target string) (network, address, host string, ok bool) {
	if path, is := strings.CutPrefix(target, "unix:"); is {
		path = strings.TrimPrefix(path, "//")
		return "unix", path, "localhost", path != ""
	}
	_, port, err := net.SplitHostPort(target)
	return "tcp", target, target, err == nil && port != "" && !strings.Contains(target, "/")
}
