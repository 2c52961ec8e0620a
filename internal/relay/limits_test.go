package relay

import (
	"errors"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/cabrank/cabrank/internal/testkit"
)

// disconnectedFor returns how many callers' connections were ended for a reason.
func (g *rig) disconnectedFor(reason string) uint64 { return g.Stats().Disconnects["caller"][reason] }

// R15: the answer to a PING does not wait for DATA that waits: no more of that
// is before it than one output buffer holds.
func TestPingBeforeData(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t)
		_, worker := g.pipeWorker("w1", 1)
		caller := testkit.NewCaller(t, g.dialPipe())
		caller.Greet(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 30})
		caller.Skip(testkit.WindowUpdate)
		caller.WriteWindowUpdate(0, 1<<30)
		caller.WriteHeaders(1, end, request(hello)...)
		worker.WantHeaders(1, end)
		caller.StopReading()
		worker.WriteHeaders(1, noEnd, responseHead()...)
		answer := make([]byte, 16<<10)
		sent := 0
		for room := true; room; synctest.Wait() { // as much as cabrank takes
			if room = int64(sent+len(answer)) <= 65536+worker.Credit(1); room {
				worker.WriteData(1, noEnd, answer)
				sent += len(answer)
			}
		}
		caller.WritePing([8]byte{1})
		synctest.Wait()
		caller.ReadAgain()
		caller.WantFields(1, noEnd, responseHead()...)
		before := 0
		for f := caller.WantFrame(); f.Kind != testkit.PingAck; f = caller.WantFrame() {
			before += len(f.Payload)
		}
		if before >= sent || before > outputHigh+2*len(answer) {
			t.Errorf("%d of %d bytes came before the answer to a PING", before, sent)
		}
		caller.WriteRST(1, http2.ErrCodeCancel)
		caller.Skip(testkit.Data)
		worker.WantRST(1, http2.ErrCodeCancel)
	})
}

// dialPipe connects a caller in memory that has said nothing yet.
func (g *rig) dialPipe() net.Conn {
	ours, theirs := net.Pipe()
	g.ServeConn(ours)
	return theirs
}

// The relay does not wait for rejected callers that do not hang up, and sends GOAWAY to a
// bounded number of them only.
func TestConnectionLimitStubborn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t, func(o *Options) { o.Limits.Connections = 1 })
		g.pipeCaller()
		var ends []net.Conn
		for range maxRejecting + 10 {
			ends = append(ends, g.dialPipe())
		}
		synctest.Wait()
		if n := g.rejecting.Load(); n != maxRejecting {
			t.Errorf("%d are being told, want %d", n, maxRejecting)
		}
		pass(rejectTime + time.Millisecond)
		if n := g.rejecting.Load(); n != 0 {
			t.Errorf("%d are still being told", n)
		}
		for _, end := range ends {
			_ = end.Close()
		}
	})
}

// A connection with a descriptor that is kept for others is closed at once and
// counted, though there could be more connections: nobody is told, which would
// keep the descriptor.
func TestDescriptorsAreKept(t *testing.T) {
	g := newRig(t, func(o *Options) { o.Limits.Descriptors = 1 })
	conn, err := net.Dial("tcp", g.addr)
	testkit.Must(t, err)
	defer conn.Close()
	testkit.Must(t, conn.SetReadDeadline(time.Now().Add(soon)))
	if n, err := conn.Read(make([]byte, 1)); n > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read %d bytes, %v; want the end", n, err)
	}
	if g.connections.Load() != 0 || g.rejecting.Load() != 0 {
		t.Errorf("%d connections, %d that are told", g.connections.Load(), g.rejecting.Load())
	}
	testkit.Eventually(t, soon, "the count", func() bool { return g.disconnectedFor("too_many") == 1 })
}

// While descriptors are scarce, an idle caller is evicted before a new one is refused.
func TestScarceDescriptorsChangeHands(t *testing.T) {
	g := newRig(t)
	idle := g.callerFrom("127.0.0.2")
	g.reload(func(o *Options) { o.Limits.Descriptors = 1 })
	p := g.callerFrom("127.0.0.3")
	p.WriteHeaders(1, end, request(checkPath)...)
	p.WantHeaders(1, noEnd)
	idle.WantGoAway(http2.ErrCodeNo)
	idle.WantClosed()
}
