package connectcaller

import (
	"context"
	"net"
	"strings"
	"sync/atomic"
)

// dialer opens connections to one address and counts them.
type dialer struct {
	network, address string

	net    net.Dialer
	opened atomic.Int64
}

// dial opens a connection, whatever address is asked for: all calls have the same.
func (d *dialer) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	conn, err := d.net.DialContext(ctx, d.network, d.address)
	if err == nil {
		d.opened.Add(1)
	}
	return conn, err
}

// place takes a target apart: what is dialed, and the host of the URL.
func place(target string) (network, address, host string, ok bool) {
	if path, is := strings.CutPrefix(target, "unix:"); is {
		path = strings.TrimPrefix(path, "//")
		return "unix", path, "localhost", path != ""
	}
	_, port, err := net.SplitHostPort(target)
	return "tcp", target, target, err == nil && port != "" && !strings.Contains(target, "/")
}
