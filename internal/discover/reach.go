package discover

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"time"
)

const (
	// dialTimeout bounds one attempt to reach an address.
	dialTimeout = 3 * time.Second
	// redialTimeout and redialPause are the same, and the longest pause before it,
	// for an address that is reached and whose connection has ended: if it does not
	// answer it is out within a second (R6), and tried on.
	redialTimeout = 500 * time.Millisecond
	redialPause   = 400 * time.Millisecond
	// minPause and maxPause bound the pause between attempts; it doubles, with
	// a fifth of jitter.
	minPause = 100 * time.Millisecond
	maxPause = 5 * time.Second
)

// contact is what the held connection tells: it stands, perhaps anew, or cannot
// be had.
type contact struct{ err error }

// dialer makes connections as net.Dialer.DialContext does.
type dialer func(ctx context.Context, network, address string, timeout time.Duration) (net.Conn, error)

// reacher holds one silent connection to an address (decision 006). Only its
// end tells anything; nothing is sent.
type reacher struct {
	network, address string
	dial             dialer
	contacts         chan<- contact
}

// run tells of every connection that was made, and of the first attempt in a row
// that has failed, until ctx ends.
func (r *reacher) run(ctx context.Context) {
	pause, reached, told := minPause, false, false
	for ctx.Err() == nil {
		began, timeout := time.Now(), dialTimeout
		if reached {
			timeout = redialTimeout
		}
		conn, err := r.dial(ctx, r.network, r.address, timeout)
		if reached = err == nil; reached || !told {
			r.tell(ctx, contact{err})
		}
		told = !reached
		if reached {
			hold(ctx, conn)
		}
		if time.Since(began) > maxPause {
			pause = minPause
			continue
		}
		wait := pause
		if reached {
			wait = min(wait, redialPause)
		}
		if !sleep(ctx, jitter(wait)) {
			return
		}
		pause = min(2*pause, maxPause)
	}
}

func (r *reacher) tell(ctx context.Context, c contact) {
	select {
	case r.contacts <- c:
	case <-ctx.Done():
	}
}

// dial is the dialer of the real world.
func dial(ctx context.Context, network, address string, timeout time.Duration) (net.Conn, error) {
	d := net.Dialer{Timeout: timeout}
	return d.DialContext(ctx, network, address)
}

// hold waits until the peer ends the connection, or ctx does.
func hold(ctx context.Context, conn net.Conn) {
	stop := context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Now()) })
	defer stop()
	var b [512]byte
	for {
		if _, err := conn.Read(b[:]); err != nil {
			_ = conn.Close() // nothing was written
			return
		}
	}
}

// reason leaves out of an error what the log tells beside it.
func reason(err error) string {
	if sys, ok := errors.AsType[*os.SyscallError](err); ok {
		return sys.Err.Error()
	}
	return err.Error()
}

func jitter(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.8 + 0.4*rand.Float64()))
}

// sleep reports false when ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
