//go:build soak

package socket_test

import "testing"

// The bar: a thousand sockets that read nothing of 20,000 events, and the budget of the
// default. All have the same events, so that nearly all is what each has beside them.
func TestSlowReadersSoak(t *testing.T) { slowReaders(t, 1000, 20_000, 1, 64<<20, 64<<20) }

// A hundred sockets of which each has events of its own use the budget up. Beside it each
// has a goroutine that cannot write, which does not count: 30 KiB.
func TestSlowReadersApartSoak(t *testing.T) { slowReaders(t, 100, 300_000, 100, 64<<20, 72<<20) }
