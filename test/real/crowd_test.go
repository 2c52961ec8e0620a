//go:build real || soak

package real_test

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/http2"
)

const (
	crowdSize = 10_000
	// mostIdle is what an idle connection may cost, KiB: twice what bench/ holds
	// it to on a machine that does nothing else.
	mostIdle = 16

	leastCrowd    = 1000 // fewer would show nothing
	filesBeside   = 500  // open in the test, or in cabrank, beside a connection for each
	crowdDialers  = 16
	crowdPatience = 3 * time.Minute // for all of them
)

// crowd is idle connections of callers, one half of which have made a call.
type crowd struct {
	c      *Cabrank
	before float64 // connections without it
	conns  []net.Conn
}

// gather makes 10,000 idle connections, or as many as may be opened, and returns
// when cabrank counts them all. Every one has exchanged SETTINGS, and every
// second one has also made a call, which was answered.
func gather(t *testing.T, c *Cabrank) *crowd {
	t.Helper()
	g := &crowd{c: c, before: c.metric("cabrank_connections"), conns: make([]net.Conn, fits(t))}
	t.Cleanup(g.close)
	failures := make([]error, crowdDialers)
	var dialing sync.WaitGroup
	for d := range failures {
		dialing.Go(func() { failures[d] = g.dial(d) })
	}
	dialing.Wait()
	if err := errors.Join(failures...); err != nil {
		t.Fatal(err)
	}
	c.waitMetric("cabrank_connections", g.before+float64(len(g.conns)))
	return g
}

// fits returns how many connections of the crowd this process may open, and
// cabrank, which inherits the limit. The runtime has raised it to its hardest.
func fits(t *testing.T) int {
	t.Helper()
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		t.Fatal(err)
	}
	if files.Cur >= crowdSize+filesBeside {
		return crowdSize
	}
	if files.Cur < leastCrowd+filesBeside {
		t.Skipf("at most %d open files: too few for %d connections", files.Cur, leastCrowd)
	}
	return int(files.Cur) - filesBeside
}

// dial makes every 16th connection, from the first on.
func (g *crowd) dial(first int) error {
	deadline := time.Now().Add(crowdPatience)
	quiet, caller := newArms(), newArms()
	caller.ask()
	for i := first; i < len(g.conns); i += crowdDialers {
		conn, err := net.DialTimeout("tcp", g.c.Addr, crowdPatience)
		if err != nil {
			return fmt.Errorf("idle connection %d: %w", i, err)
		}
		g.conns[i] = conn
		if i/crowdDialers%2 == 0 {
			err = settle(conn, deadline, quiet.out.Bytes(), false)
		} else {
			err = settle(conn, deadline, caller.out.Bytes(), true)
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

// leave ends all connections and returns when cabrank counts none of them.
func (g *crowd) leave() {
	g.c.t.Helper()
	g.close()
	g.c.waitMetric("cabrank_connections", g.before)
}

// close resets most of the connections: thousands that end in order would be
// kept by the system for a minute, in the way of whatever is tested next.
func (g *crowd) close() {
	for i, conn := range g.conns {
		if conn == nil {
			continue
		}
		if tcp, ok := conn.(*net.TCPConn); ok && i%10 > 0 {
			_ = tcp.SetLinger(0) // fails if it is closed already
		}
		conn.Close() // a second time too
	}
}

// rssKiB returns the resident memory of a process.
func rssKiB(t testing.TB, pid int) int {
	t.Helper()
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if value, found := strings.CutPrefix(line, "VmRSS:"); found {
			kib, err := strconv.Atoi(strings.Fields(value)[0])
			if err != nil {
				t.Fatal(err)
			}
			return kib
		}
	}
	t.Fatal("no VmRSS")
	return 0
}
