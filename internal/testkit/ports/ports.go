// Package ports finds loopback ports for what listens during a test or a measurement.
package ports

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Free returns the first of n ports in a row that were free just now on all the given
// addresses, 127.0.0.1 if there are none. They are out of the range from which the
// system gives some by itself, so that no caller's connection takes one while its
// process is started again, and by chance: who asks at the same time should get others.
func Free(n int, addresses ...string) (int, error) {
	const first, end = 20000, 32000
	if len(addresses) == 0 {
		addresses = []string{"127.0.0.1"}
	}
	if n > end-first {
		return 0, fmt.Errorf("%d ports in a row: there are %d at most", n, end-first)
	}
	var why error
	for range 1000 {
		start := first + rand.IntN(end-first-n+1)
		if why = areFree(start, n, addresses); why == nil {
			return start, nil
		}
	}
	return 0, errors.Join(fmt.Errorf("no %d free ports in a row", n), why)
}

func areFree(start, n int, addresses []string) error {
	for port := start; port < start+n; port++ {
		for _, address := range addresses {
			listener, err := net.Listen("tcp", net.JoinHostPort(address, strconv.Itoa(port)))
			if err != nil {
				return err
			}
			listener.Close()
		}
	}
	return nil
}
