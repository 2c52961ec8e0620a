package testkit

import (
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// FreePorts returns the first of n ports in a row that were free just now on all the
// given loopback addresses, 127.0.0.1 if there are none. They are out of the range
// from which the system gives none by itself, and by chance: who asks at the same
// time should get others.
func FreePorts(t testing.TB, n int, addresses ...string) int {
	t.Helper()
	if len(addresses) == 0 {
		addresses = []string{"127.0.0.1"}
	}
	for range 1000 {
		start := 20000 + rand.IntN(12000-n)
		if areFree(start, n, addresses) {
			return start
		}
	}
	t.Fatalf("no %d free ports in a row", n)
	return 0
}

func areFree(start, n int, addresses []string) bool {
	for port := start; port < start+n; port++ {
		for _, address := range addresses {
			listener, err := net.Listen("tcp", net.JoinHostPort(address, strconv.Itoa(port)))
			if err != nil {
				return false
			}
			listener.Close()
		}
	}
	return true
}

// FreeAddress returns an address of the loopback interface that was free just now.
func FreeAddress(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}
