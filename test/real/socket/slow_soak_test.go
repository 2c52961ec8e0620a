//go:build soak

package socket_test

import "testing"

// The bar: a thousand sockets that read nothing of 20,000 events.
func TestSlowReadersSoak(t *testing.T) { slowReaders(t, 1000, 20_000, 64<<20) }
