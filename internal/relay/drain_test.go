package relay

import (
	"net"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/cabrank/cabrank/internal/testkit"
)

const lastID = 1<<31 - 1

// drain runs Drain beside the test and returns what waits for its end.
func (g *rig) drain(timeout time.Duration, hurry <-chan struct{}) (wait func()) {
	done := make(chan struct{})
	go func() { defer close(done); g.Drain(timeout, hurry) }() // bounded by timeout
	g.t.Cleanup(func() { <-done })
	return func() { <-done }
}

// R17: the answers of the end are flushed, and a caller that goes on sending
// into the closed house still gets them: half-close comes before close.
func TestDrainFlushes(t *testing.T) {
	g := newRig(t)
	_, accept := g.worker("w1", 1)
	caller := g.caller()
	caller.Skip(testkit.GoAway, testkit.Ping)
	caller.WriteHeaders(1, noEnd, request(hello)...)
	worker := accept()
	worker.WantHeaders(1, noEnd)
	wait := g.drain(10*time.Millisecond, nil)
	caller.Fragile()
	for range 20 {
		caller.WriteData(1, noEnd, make([]byte, 1000))
	}
	wantStatus(caller, 1, "14", "cabrank: shutting down")
	caller.WantRST(1, http2.ErrCodeNo)
	caller.WantClosed()
	wait()
}

// After a drain nobody is let in.
func TestDrainClosesDoor(t *testing.T) {
	g := newRig(t)
	path := filepath.Join(t.TempDir(), "door") // a port could be somebody else's soon
	ln, err := net.Listen("unix", path)
	testkit.Must(t, err)
	stopped := g.serve(ln)
	conn, err := net.Dial("unix", path)
	testkit.Must(t, err)
	testkit.Eventually(t, soon, "the door to be open", func() bool { return g.sources.Open.Load() == 1 })
	conn.Close()
	g.Drain(time.Second, nil)
	if conn, err := net.Dial("unix", path); err == nil {
		conn.Close()
		t.Error("the door still accepts")
	}
	stopped()
	g.Drain(time.Second, nil) // once more changes nothing
	g.serve(testkit.Listen(t))()
}

// A call that gets its slot when the relay has ended is told so.
func TestNoConnectionAtTheEnd(t *testing.T) {
	g := newRig(t)
	g.closing.Store(true)
	caller := testkit.DialCaller(t, g.addr) // the door knows, too
	caller.WantClosed()
	g.closing.Store(false)
	late := g.caller()
	g.closing.Store(true)
	g.worker("w1", 1)
	late.WriteHeaders(1, end, request(hello)...)
	wantStatus(late, 1, "14", "cabrank: shutting down")
}
