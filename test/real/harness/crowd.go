package harness

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/cabrank/cabrank/internal/testkit"
)

// Sizes of a crowd, in connections where nothing else is said.
const (
	// CrowdSize is how many gather, where so many files may be open.
	CrowdSize = 10_000
	// MostIdle is what an idle connection may cost, KiB: twice what bench/ holds
	// it to on a machine that does nothing else.
	MostIdle = 16

	leastCrowd    = 1000 // fewer would show nothing
	filesBeside   = 500  // open in the test, or in cabrank, beside a connection for each
	crowdDialers  = 16
	crowdPatience = 3 * time.Minute // for all of them
)

// Crowd is idle connections of callers, one half of which have made a call.
type Crowd struct {
	c      *Cabrank
	before float64 // connections without it
	Conns  []net.Conn
}

// GatherCrowd makes 10,000 idle connections, or as many as may be opened, and returns
// when cabrank counts them all. Every one has exchanged SETTINGS, and every
// second one has also made a call, which was answered.
func GatherCrowd(t testing.TB, c *Cabrank) *Crowd {
	t.Helper()
	g := &Crowd{c: c, before: c.Metric("cabrank_connections"), Conns: make([]net.Conn, fits(t))}
	t.Cleanup(g.close)
	failures := make([]error, crowdDialers)
	var dialing sync.WaitGroup
	for d := range failures {
		dialing.Go(func() { failures[d] = g.dial(d) })
	}
	dialing.Wait()
	testkit.Must(t, errors.Join(failures...))
	c.WaitMetric("cabrank_connections", g.before+float64(len(g.Conns)))
	return g
}

// fits returns how many connections of the crowd this process may open, and
// cabrank, which inherits the limit. The runtime has raised it to its hardest.
func fits(t testing.TB) int {
	t.Helper()
	var files syscall.Rlimit
	testkit.Must(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files))
	if files.Cur >= CrowdSize+filesBeside {
		return CrowdSize
	}
	if files.Cur < leastCrowd+filesBeside {
		t.Skipf("at most %d open files: too few for %d connections", files.Cur, leastCrowd)
	}
	return int(files.Cur) - filesBeside
}

// dial makes every 16th connection, from the first on.
func (g *Crowd) dial(first int) error {
	deadline := time.Now().Add(crowdPatience)
	quiet, caller := NewArms(), NewArms()
	caller.Ask()
	for i := first; i < len(g.Conns); i += crowdDialers {
		conn, err := net.DialTimeout("tcp", g.c.Addr, crowdPatience)
		if err != nil {
			return fmt.Errorf("idle connection %d: %w", i, err)
		}
		g.Conns[i] = conn
		if i/crowdDialers%2 == 0 {
			err = settle(conn, deadline, quiet.Out.Bytes(), false)
		} else {
			err = settle(conn, deadline, caller.Out.Bytes(), true)
		}
		if err != nil {
			return fmt.Errorf("idle connection %d: %w", i, err)
		}
	}
	return nil
}

// settle says what opens a connection, with a call or without, and reads until
// neither end has anything more to say.
func settle(conn net.Conn, deadline time.Time, opening []byte, calls bool) error {
	if err := conn.SetDeadline(deadline); err != nil {
		return err
	}
	if _, err := conn.Write(opening); err != nil {
		return err
	}
	frames := http2.NewFramer(nil, bufio.NewReaderSize(conn, 512))
	for known, answered := false, !calls; !known || !answered; {
		frame, err := frames.ReadFrame()
		if err != nil {
			return err
		}
		switch f := frame.(type) {
		case *http2.SettingsFrame:
			known = known || f.IsAck()
		case *http2.HeadersFrame:
			answered = answered || f.StreamEnded()
		case *http2.RSTStreamFrame, *http2.GoAwayFrame:
			return fmt.Errorf("it was sent %v", f)
		}
	}
	return conn.SetDeadline(time.Time{})
}

// Leave ends all connections and returns when cabrank counts none of them.
func (g *Crowd) Leave() {
	g.c.T.Helper()
	g.close()
	g.c.WaitMetric("cabrank_connections", g.before)
}

// close resets most of the connections: thousands that end in order would be
// kept by the system for a minute, in the way of whatever is tested next.
func (g *Crowd) close() {
	for i, conn := range g.Conns {
		if conn == nil {
			continue
		}
		if tcp, ok := conn.(*net.TCPConn); ok && i%10 > 0 {
			_ = tcp.SetLinger(0) // fails if it is closed already
		}
		conn.Close() // a second time too
	}
}
