// Package discover finds endpoints that someone else runs, and tells which of
// them can be reached.
//
// Static, the only kind so far, takes a fixed list. It holds one silent
// connection to each address: as long as that stands, or can be had anew at
// once, the endpoint is up. It sends nothing and knows no protocol.
package discover

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// dialTimeout bounds one attempt to reach an address.
	dialTimeout = 3 * time.Second
	// redialTimeout and redialPause are the same, and the longest pause before it,
	// for an address that is up and whose connection has ended: if it does not
	// answer it is out within a second (R6), and tried on.
	redialTimeout = 500 * time.Millisecond
	redialPause   = 400 * time.Millisecond
	// minPause and maxPause bound the pause between attempts; it doubles, with
	// a fifth of jitter.
	minPause = 100 * time.Millisecond
	maxPause = 5 * time.Second
)

// Registry is told which endpoints can take calls. Calls for one address come
// from one goroutine; those for different ones overlap.
type Registry interface {
	Up(address, network, dial string)
	Down(address string)
}

// Static watches a fixed list of addresses, "host:port" or "unix:/path".
type Static struct {
	addresses []string
	registry  Registry
	log       *slog.Logger
	reached   atomic.Bool
	running   sync.WaitGroup
	cancel    context.CancelFunc
}

// NewStatic returns a watch of the addresses; Start begins it.
func NewStatic(addresses []string, registry Registry, log *slog.Logger) *Static {
	return &Static{addresses: addresses, registry: registry, log: log}
}

// Start watches every address until Stop.
func (s *Static) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	for _, address := range s.addresses {
		s.running.Add(1)
		go s.watch(ctx, address) // ended by Stop, which waits for it
	}
}

// Stop ends the watch; endpoints stay as they are.
func (s *Static) Stop() {
	if s.cancel == nil {
		return // never started
	}
	s.cancel()
	s.running.Wait()
}

// EverReached reports whether any address has ever been reached.
func (s *Static) EverReached() bool { return s.reached.Load() }

// condition is what was said last of an address.
type condition uint8

const (
	unknown condition = iota
	up
	down
)

func (s *Static) watch(ctx context.Context, address string) {
	defer s.running.Done()
	network, target := Split(address)
	pause, now := minPause, unknown
	for ctx.Err() == nil {
		began, timeout := time.Now(), dialTimeout
		if now == up {
			timeout = redialTimeout
		}
		conn, err := dial(ctx, network, target, timeout)
		switch {
		case err == nil && now != up:
			s.reached.Store(true)
			s.log.Info("upstream is up", "upstream", address)
			s.registry.Up(address, network, target)
			now = up
		case err != nil && now != down && ctx.Err() == nil:
			s.log.Warn("upstream is down", "upstream", address, "error", reason(err))
			if now == up {
				s.registry.Down(address)
			}
			now = down
		}
		if err == nil {
			hold(ctx, conn)
		}
		if time.Since(began) > maxPause {
			pause = minPause
			continue
		}
		wait := pause
		if now == up {
			wait = min(wait, redialPause)
		}
		if !sleep(ctx, jitter(wait)) {
			return
		}
		pause = min(2*pause, maxPause)
	}
}

// Split tells the network and the address to dial from the written form.
func Split(address string) (network, target string) {
	if path, isUnix := strings.CutPrefix(address, "unix:"); isUnix {
		return "unix", path
	}
	return "tcp", address
}

func dial(ctx context.Context, network, target string, timeout time.Duration) (net.Conn, error) {
	d := net.Dialer{Timeout: timeout}
	return d.DialContext(ctx, network, target)
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

func reason(err error) string {
	if sys, ok := errors.AsType[*os.SyscallError](err); ok {
		return sys.Err.Error()
	}
	return err.Error()
}

func jitter(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.8 + 0.4*rand.Float64()))
}

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
