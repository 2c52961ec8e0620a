package relay

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/cabrank/cabrank/internal/testkit"
)

// disconnectedFor returns how many callers' connections were ended for a reason.
func (g *rig) disconnectedFor(reason string) uint64 { return g.Stats().Disconnects["caller"][reason] }

// A connection with a descriptor that is kept for others is closed at once and
// counted, though there could be more connections: nobody is told, which would
// keep the descriptor.
func TestDescriptorsAreKept(t *testing.T) {
	g := newRig(t, func(o *Options) { o.Limits.Descriptors = 1 })
	conn, err := net.Dial("tcp", g.addr)
	testkit.Must(t, err)
	defer conn.Close()
	testkit.Must(t, conn.SetReadDeadline(time.Now().Add(soon)))
	n, err := conn.Read(make([]byte, 1))
	testkit.Want(t, n == 0 && !errors.Is(err, os.ErrDeadlineExceeded), "read %d bytes, %v; want the end", n, err)
	testkit.Want(t, g.sources.Open.Load() == 0 && g.rejecting.Load() == 0,
		"%d connections, %d that are told", g.sources.Open.Load(), g.rejecting.Load())
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
