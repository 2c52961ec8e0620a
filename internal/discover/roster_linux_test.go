package discover

import (
	"net"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cabrank/cabrank/internal/testkit"
)

// R6: an address whose connection has ended and that does not answer any more
// is out at once, not after the patience for one that never did, which is a minute here.
func TestVanishedAddressIsDownSoon(t *testing.T) {
	server, address, _, b := startUp(t, asUsual)

	// With its queue full and nobody who takes from it the kernel drops further
	// SYNs.
	server.deaf.Store(true)
	shrinkBacklog(t, server.Listener)
	before, last := server.held(), dialOnce(t, address)
	testkit.Eventually(t, 30*time.Second, "the last connection that is taken", func() bool { return server.held() > before })
	for last {
		last = dialOnce(t, address)
	}
	server.drop()
	b.await(t, address, "down")
}

// dialOnce reports whether a connection can be had, which is left open.
func dialOnce(t *testing.T, address string) bool {
	t.Helper()
	conn, err := net.DialTimeout("tcp", address, 300*time.Millisecond)
	if err == nil {
		t.Cleanup(func() { _ = conn.Close() })
	}
	return err == nil
}

// shrinkBacklog has a listener keep one connection that nobody accepts.
func shrinkBacklog(t *testing.T, ln net.Listener) {
	t.Helper()
	raw, err := ln.(syscall.Conn).SyscallConn()
	testkit.Must(t, err)
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = unix.Listen(int(fd), 0) }); err != nil || failed != nil {
		t.Fatal(err, failed)
	}
}
