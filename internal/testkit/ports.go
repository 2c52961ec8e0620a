package testkit

import (
	"net"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit/ports"
)

// FreePorts returns the first of n ports in a row that were free just now on all the
// given loopback addresses, 127.0.0.1 if there are none; see ports.Free.
func FreePorts(t testing.TB, n int, addresses ...string) int {
	t.Helper()
	start, err := ports.Free(n, addresses...)
	Must(t, err)
	return start
}

// FreeAddress returns an address of the loopback interface that was free just now.
func FreeAddress(t testing.TB) string {
	t.Helper()
	listener := Listen(t)
	listener.Close()
	return listener.Addr().String()
}

// Dial connects to an address, until the test ends at the latest.
func Dial(t testing.TB, address string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	Must(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}
