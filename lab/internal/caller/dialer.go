package caller

import (
	"context"
	"net"
	"strings"
	"sync/atomic"
)

// Dialer opens connections and counts them.
type Dialer struct {
	net    net.Dialer
	opened atomic.Int64
	last   atomic.Pointer[error] // why a connection could not be opened
}

// Opened returns how many connections were opened so far.
func (d *Dialer) Opened() int64 { return d.opened.Load() }

// dial opens a connection to an address as grpc-go writes it: host:port, or a path
// with unix: before it.
func (d *Dialer) dial(ctx context.Context, address string) (net.Conn, error) {
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		return d.Dial(ctx, "unix", strings.TrimPrefix(path, "//"))
	}
	return d.Dial(ctx, "tcp", address)
}

// Dial opens a connection.
func (d *Dialer) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := d.net.DialContext(ctx, network, address)
	if err != nil {
		d.last.Store(&err)
		return nil, err
	}
	d.opened.Add(1)
	return conn, nil
}
