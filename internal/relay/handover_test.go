package relay

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

// R20: the listener goes from one relay to the next, five times, under callers that
// never pause: those that make a connection for each call, and those that keep
// theirs as long as they may. No call fails, and none is left behind.
func TestHandOver(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) {
			address := "127.0.0.1:0"
			if network == "unix" {
				address = filepath.Join(t.TempDir(), "door")
			}
			ln, err := net.Listen(network, address)
			testkit.Must(t, err)
			worker := openShop(t, 1).ln.Addr()
			crowd := newCrowd(t, network, ln.Addr().String())
			now, stopped := succeed(t, ln, worker)
			crowd.start(t)
			for range 5 {
				crowd.made(t, 100)
				next := inherit(t, ln)
				after, stoppedAfter := succeed(t, next, worker)
				now.ReleaseListeners()
				stopped()
				began := time.Now()
				now.Drain(10*soon, nil)
				if took := time.Since(began); took > 4*soon {
					t.Errorf("the drain took %v", took)
				}
				now.wantNothingLeft()
				ln, now, stopped = next, after, stoppedAfter
			}
			crowd.made(t, 100)
			crowd.stop()
		})
	}
}

// succeed starts a relay on a listener.
func succeed(t *testing.T, ln net.Listener, worker net.Addr) (g *rig, stopped func()) {
	t.Helper()
	g = newRig(t, func(o *Options) { o.Shards = 2 })
	g.Up(g.AddEndpoint("w1", 50, true), worker.Network(), worker.String())
	return g, g.serve(ln)
}

// inherit returns another copy of a listener, as another process would have it.
func inherit(t *testing.T, ln net.Listener) net.Listener {
	t.Helper()
	file, err := ln.(interface{ File() (*os.File, error) }).File()
	testkit.Must(t, err)
	defer file.Close()
	next, err := net.FileListener(file)
	testkit.Must(t, err)
	return next
}

// overHTTP2 is HTTP/2 without TLS.
func overHTTP2() *http.Protocols {
	p := new(http.Protocols)
	p.SetUnencryptedHTTP2(true)
	return p
}

// crowd is callers that never pause.
type crowd struct {
	network, address string
	messages         int  // of a whole answer
	cut              bool // a stream may be cut off, behind whole messages

	quit    chan struct{}
	calling sync.WaitGroup
	calls   atomic.Int64
	failed  chan error
}

func newCrowd(t *testing.T, network, address string) *crowd {
	t.Helper()
	c := &crowd{network: network, address: address, messages: 1, quit: make(chan struct{}), failed: make(chan error, 1)}
	t.Cleanup(func() {
		select {
		case err := <-c.failed:
			t.Error(err)
		default:
		}
	})
	return c
}

func (c *crowd) start(t *testing.T) {
	t.Helper()
	for i := range 8 {
		c.calling.Go(func() { c.call(i%2 == 0) })
	}
	t.Cleanup(c.stop)
}

func (c *crowd) stop() {
	select {
	case <-c.quit:
	default:
		close(c.quit)
	}
	c.calling.Wait()
}

// made waits for so many more calls.
func (c *crowd) made(t *testing.T, n int64) {
	t.Helper()
	want := c.calls.Load() + n
	testkit.Eventually(t, 10*soon, "more calls", func() bool { return c.calls.Load() >= want || len(c.failed) > 0 })
}

// call makes one call after the other, each on a connection of its own if fresh.
func (c *crowd) call(fresh bool) {
	transport := c.transport()
	for {
		select {
		case <-c.quit:
			transport.CloseIdleConnections()
			return
		default:
		}
		if err := c.callOnce(transport); err != nil {
			select {
			case c.failed <- err:
			default:
			}
		}
		c.calls.Add(1)
		if fresh {
			transport.CloseIdleConnections()
			transport = c.transport()
		}
	}
}

func (c *crowd) transport() *http.Transport {
	return &http.Transport{Protocols: overHTTP2(), DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, c.network, c.address)
	}}
}

func (c *crowd) callOnce(transport *http.Transport) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*soon)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://greeter.test"+hello, bytes.NewReader(hi()))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/grpc")
	request.Header.Set("TE", "trailers")
	answer, err := transport.RoundTrip(request)
	if err != nil && strings.Contains(err.Error(), "could not be established") {
		// On a busy machine a caller may be told to go, and be gone, before it has its
		// first request: clients of gRPC connect again then, this one does not.
		request.Body, _ = request.GetBody() // it never fails
		answer, err = transport.RoundTrip(request)
	}
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	whole := bytes.Repeat(hi(), c.messages)
	switch status := answer.Trailer.Get("Grpc-Status"); {
	case status == "0" && bytes.Equal(body, whole):
	case c.cut && answer.Trailer.Get("Grpc-Message") == draining && len(body)%len(hi()) == 0 && bytes.HasPrefix(whole, body):
	default:
		return fmt.Errorf("status %q %v, trailers %v, body %q", answer.Header.Get("Grpc-Status"), answer.Header, answer.Trailer, body)
	}
	return nil
}
