package redislink

import (
	"errors"
	"net"
	"testing"
)

// scriptedConn writes as the script says.
type scriptedConn struct {
	net.Conn

	write func(b []byte) (int, error)
}

func (c scriptedConn) Write(b []byte) (int, error) { return c.write(b) }

// A write that fails beside one that does not hides nothing of that.
func TestFailedWriteHidesNoOther(t *testing.T) {
	c := &Client{conns: map[*conn]struct{}{}}
	good := c.hold(scriptedConn{write: func(b []byte) (int, error) { return len(b), nil }})
	var before uint64
	bad := c.hold(scriptedConn{write: func([]byte) (int, error) {
		before = c.Written()
		if _, err := good.Write([]byte("here")); err != nil {
			t.Error(err)
		}
		return 0, errors.New("it has ended")
	}})
	if _, err := bad.Write([]byte("away")); err == nil || !c.HasWritten(before) {
		t.Errorf("%v, and nothing was written", err)
	}
	before = c.Written()
	bad.Conn = scriptedConn{write: func([]byte) (int, error) {
		if !c.HasWritten(before) {
			t.Error("what is being written has not gone")
		}
		return 0, errors.New("it has ended")
	}}
	if _, err := bad.Write([]byte("away")); err == nil || c.HasWritten(before) {
		t.Errorf("%v, and something was written", err)
	}
}
