package redislink

import (
	"errors"
	"net"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

// scriptedConn writes as the script says.
type scriptedConn struct {
	net.Conn

	write func(b []byte) (int, error)
}

func (c scriptedConn) Write(b []byte) (int, error) { return c.write(b) }

// What others write meanwhile counts, unless it is known which connection has ended.
func TestHasWritten(t *testing.T) {
	c := &Client{conns: map[*conn]struct{}{}}
	good := c.hold(scriptedConn{write: func(b []byte) (int, error) { return len(b), nil }})
	for _, one := range []struct {
		name       string
		others     bool
		went       int
		all, alone bool
	}{
		{name: "nothing"},
		{name: "others", others: true, all: true},
		{name: "half", went: 1, all: true, alone: true},
	} {
		before := c.Written()
		bad := c.hold(scriptedConn{write: func(b []byte) (int, error) {
			testkit.Want(t, c.HasWritten(before, nil), "what is being written has not gone")
			if one.others {
				_, _ = good.Write(b)
			}
			return one.went, errors.New("it has ended")
		}})
		_, err := bad.Write([]byte("away"))
		if all, alone := c.HasWritten(before, nil), c.HasWritten(before, err); err == nil || all != one.all || alone != one.alone {
			t.Errorf("%s: %v, all %v, alone %v", one.name, err, all, alone)
		}
	}
}
