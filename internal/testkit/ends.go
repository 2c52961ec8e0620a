package testkit

import (
	"net"
	"testing"
	"time"
)

// TCPPair makes two ends of one connection over loopback, closed at the end of
// the test.
func TCPPair(t testing.TB) (dialed, accepted net.Conn) {
	t.Helper()
	l := Listen(t)
	dialed, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatalf("dial: %v", err)
	}
	accepted, err = l.Accept()
	if err != nil {
		t.Fatalf("accept: %v", err)
	}
	t.Cleanup(func() { dialed.Close(); accepted.Close() })
	return dialed, accepted
}

// DialCaller makes a caller on a new TCP connection to addr.
func DialCaller(t testing.TB, addr string) *Peer {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatalf("dial: %v", err)
	}
	return NewCaller(t, conn)
}

// ListenWorker listens on a loopback port. accept waits for the next
// connection, at most 30 s, and makes a worker of it.
func ListenWorker(t testing.TB) (addr string, accept func() *Peer) {
	t.Helper()
	l := Listen(t)
	conns := make(chan net.Conn)
	closed := make(chan struct{})
	go func() { // ends when the listener is closed by the cleanup below
		defer close(closed)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			select {
			case conns <- conn:
			case <-t.Context().Done():
				conn.Close()
			}
		}
	}()
	t.Cleanup(func() { l.Close(); <-closed })
	return l.Addr().String(), func() *Peer {
		t.Helper()
		return NewWorker(t, awaitConn(t, conns))
	}
}

// Listen listens on a loopback port until the end of the test.
func Listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	Must(t, err)
	t.Cleanup(func() { l.Close() })
	return l
}

func awaitConn(t testing.TB, conns <-chan net.Conn) net.Conn {
	t.Helper()
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case conn := <-conns:
		return conn
	case <-late.C:
		t.Fatalf("nobody has connected in %v", patience)
		return nil
	}
}
