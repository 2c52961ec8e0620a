package caller

import (
	"context"
	"net"
	"strings"
	"sync/atomic"
)

// dialer opens connections and counts them.
type dialer struct {
	net    net.Dialer
	opened atomic.Int64
	failed atomic.Int64
	last   atomic.Pointer[error] // why a connection could not be opened
}

// dial opens a connection to an address as grpc-go writes it: host:port, or a path
// with unix: before it.
func (d *dialer) dial(ctx context.Context, address string) (net.Conn, error) {
	network := "tcp"
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		network, address = "unix", strings.TrimPrefix(path, "//")
	}
	conn, err := d.net.DialContext(ctx, network, address)
	if err != nil {
		d.failed.Add(1)
		d.last.Store(&err)
		return nil, err
	}
	d.opened.Add(1)
	return conn, nil
}
