package discover

import (
	"log/slog"
	"net"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// R6: an address whose connection has ended and that does not answer any more
// is out within a second, not after the patience for one that never did.
func TestVanishedAddressIsDownSoon(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	address := ln.Addr().String()
	b := &board{state: map[string]string{}}
	s := NewStatic([]string{address}, b, slog.New(slog.DiscardHandler))
	s.Start()
	defer s.Stop()
	held, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	b.await(t, address, "up at tcp "+address)

	// With its queue full the kernel drops further SYNs.
	shrinkBacklog(t, ln)
	for {
		conn, err := net.DialTimeout("tcp", address, 300*time.Millisecond)
		if err != nil {
			break
		}
		t.Cleanup(func() { _ = conn.Close() })
	}
	began := time.Now()
	held.Close()
	b.await(t, address, "down")
	if took := time.Since(began); took > dialTimeout-500*time.Millisecond {
		t.Errorf("down after %v", took)
	}
}

// shrinkBacklog has a listener keep one connection that nobody accepts.
func shrinkBacklog(t *testing.T, ln net.Listener) {
	t.Helper()
	raw, err := ln.(syscall.Conn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = unix.Listen(int(fd), 0) }); err != nil || failed != nil {
		t.Fatal(err, failed)
	}
}
