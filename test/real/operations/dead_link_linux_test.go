//go:build soak

package operations_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"

	"github.com/cabrank/cabrank/examples/go/workpb"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// strand is a network of two ends, of which ours has an address of this machine.
type strand struct {
	t                testing.TB
	space, near, far string // names
	here, there      string // addresses
}

// newStrand makes one, which needs root.
func newStrand(t testing.TB) *strand {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("a network needs root, as in `make soak`")
	}
	id := os.Getpid() % 60_000
	s := &strand{t: t, space: fmt.Sprintf("cabrank%d", id), near: fmt.Sprintf("cbn%d", id), far: fmt.Sprintf("cbf%d", id)}
	s.here, s.there = fmt.Sprintf("10.%d.%d.1", 160+id>>8&63, id&255), fmt.Sprintf("10.%d.%d.2", 160+id>>8&63, id&255)
	s.ip("netns", "add", s.space)
	t.Cleanup(func() { s.ip("netns", "del", s.space) }) // with both ends
	s.ip("link", "add", s.near, "type", "veth", "peer", "name", s.far, "netns", s.space)
	s.ip("addr", "add", s.here+"/24", "dev", s.near)
	s.ip("link", "set", s.near, "up")
	s.ip("-n", s.space, "addr", "add", s.there+"/24", "dev", s.far)
	s.ip("-n", s.space, "link", "set", s.far, "up")
	return s
}

func (s *strand) ip(args ...string) {
	s.t.Helper()
	out, err := exec.Command("ip", args...).CombinedOutput()
	testkit.Need(s.t, err == nil, "ip %s: %v\n%s", strings.Join(args, " "), err, out)
}

// cut takes the far end down: neither end is told.
func (s *strand) cut() { s.ip("-n", s.space, "link", "set", s.far, "down") }

// dial connects from the far end, in a thread that is there and ends with it.
func (s *strand) dial(_ context.Context, addr string) (nc net.Conn, err error) {
	done := make(chan struct{})
	go func() { // ends with the connection made
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread is of no use here any more
		var space *os.File
		if space, err = os.Open("/run/netns/" + s.space); err != nil {
			return
		}
		defer space.Close()
		if err = unix.Setns(int(space.Fd()), unix.CLONE_NEWNET); err == nil {
			nc, err = net.DialTimeout("tcp", addr, harness.Patience)
		}
	}()
	<-done
	return nc, err
}

// The network of a caller dies without a word: its silent call, its stream that goes on
// talking and its call that waits are gone within a minute, and others have the slots.
func TestDeadLinkFreesItsSlots(t *testing.T) {
	s := newStrand(t)
	listener, err := net.Listen("tcp", net.JoinHostPort(s.here, "0"))
	testkit.Must(t, err)
	addr := listener.Addr().String()
	_ = listener.Close()
	c := harness.StartCabrank(t, append([]string{
		"--listen", addr, "--transport", "unix", "--workers", "1", "--slots", "2", "--queue-timeout", "2m", "--",
	}, harness.ChaosWorker(t, filepath.Join(t.TempDir(), "ledger"))...)...)
	c.WaitReady(harness.Patience)
	var ended []<-chan error
	for _, call := range []func(workpb.WorkClient) error{
		func(w workpb.WorkClient) error { // talks
			stream, err := w.Count(t.Context(), &workpb.CountRequest{To: 1 << 20, PauseMillis: 200})
			for err == nil {
				_, err = stream.Recv()
			}
			return err
		},
		silent(t.Context()), silent(t.Context()), // one of them has no slot
	} {
		conn := harness.Dial(t, addr, grpc.WithContextDialer(s.dial))
		end := make(chan error, 1)
		go func() { end <- call(workpb.NewWorkClient(conn)) }() // ends with its connection
		ended = append(ended, end)
	}
	c.WaitMetric("cabrank_in_flight", 2)
	c.WaitMetric("cabrank_queue_length", 1)
	s.cut()
	began := time.Now()
	harness.CallIo(t.Context(), harness.Dial(t, addr), "1", time.Millisecond).WantOK(t)
	took := time.Since(began)
	t.Logf("a slot was free after %v; ended by our PING: %v", took.Round(time.Second),
		strconv.FormatFloat(c.Metric("cabrank_connections_ended_total", "side", "caller", "reason", "no_answer"), 'f', -1, 64))
	testkit.Want(t, took <= time.Minute, "a slot was free after %v", took)
	c.Wait(time.Minute-took+harness.Patience, "the end of all three calls", func() bool {
		return c.Metric("cabrank_in_flight") == 0 && c.Metric("cabrank_queue_length") == 0
	})
	if took := time.Since(began); took > time.Minute {
		t.Errorf("all were gone after %v", took)
	}
	for _, end := range ended {
		select {
		case err := <-end:
			t.Errorf("a caller was told: %v", err)
		default:
		}
	}
}

// silent is a call that takes ten minutes and of which nothing is heard meanwhile.
func silent(ctx context.Context) func(workpb.WorkClient) error {
	return func(w workpb.WorkClient) error {
		_, err := w.Io(ctx, &workpb.IoRequest{Millis: 600_000})
		return err
	}
}
