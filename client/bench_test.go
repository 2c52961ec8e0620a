package client

import (
	"context"
	"net"
	"sync/atomic"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

// countedConn counts what is written in one call.
type countedConn struct {
	net.Conn
	writes *atomic.Int64
}

func (c countedConn) Write(b []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(b)
}

// BenchmarkCalls makes calls of many goroutines over one socket, to a server of the same
// process: what it costs both.
func BenchmarkCalls(b *testing.B) {
	url, _ := serve(b)
	for name, callers := range map[string]int{"1": 1, "100": 100} {
		b.Run(name, func(b *testing.B) {
			var writes atomic.Int64
			c := dial(b, url, Options{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := new(net.Dialer).DialContext(ctx, network, address)
				return countedConn{conn, &writes}, err
			}})
			b.SetParallelism(callers)
			b.ReportAllocs()
			b.ResetTimer()
			if callers == 1 {
				for range b.N {
					call(b, c)
				}
			} else {
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						call(b, c)
					}
				})
			}
			b.ReportMetric(float64(writes.Load())/float64(b.N), "writes/op")
		})
	}
}

func call(b *testing.B, c *Client) {
	b.Helper()
	_, err := c.Call(b.Context(), "test.echo", "hello")
	testkit.Want(b, err == nil, "%v", err)
}
