package relay

import (
	"errors"
	"net"
	"testing"

	"golang.org/x/net/http2"

	"github.com/cabrank/cabrank/internal/door"
	"github.com/cabrank/cabrank/internal/testkit"
)

// R20: after ReleaseListeners another holder of the socket gets all callers, also those that
// wait in the kernel. Calls here go on, and health checks keep their answer until the
// connection ends.
func TestReleaseListeners(t *testing.T) {
	g := newRig(t)
	_, accept := g.worker("w1", 1)
	shared, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	file, err := shared.(*net.TCPListener).File()
	testkit.Must(t, err)
	defer file.Close()
	successor, err := net.FileListener(file)
	testkit.Must(t, err)
	defer successor.Close()
	served := make(chan error, 1)
	go func() { served <- g.Serve(shared) }() // ended by ReleaseListeners
	caller := g.caller()
	caller.AnyOrder()
	askHealth(caller, 1, watchPath, "")
	caller.WantHeaders(1, noEnd)
	caller.WantDataBytes(1, []byte{0, 0, 0, 0, 2, 8, 1}, noEnd) // SERVING
	caller.WriteHeaders(3, end, request(hello)...)
	worker := accept()
	worker.WantHeaders(1, end)

	g.ReleaseListeners()
	if err := <-served; !errors.Is(err, door.ErrClosed) {
		t.Errorf("Serve: %v", err)
	}
	for range 10 {
		conn, err := net.Dial("tcp", shared.Addr().String())
		testkit.Must(t, err)
		taken, err := successor.Accept()
		testkit.Must(t, err)
		if taken.RemoteAddr().String() != conn.LocalAddr().String() {
			t.Error("another connection was taken")
		}
		taken.Close()
		conn.Close()
	}
	wait := g.drain(soon, nil)
	caller.WantGoAway(http2.ErrCodeNo)
	if !g.Serving() {
		t.Error("it says that it does not serve")
	}
	ping := caller.WantPing()
	reply(worker, 1)
	wantReply(caller, 3)
	caller.WritePingAck(ping)
	caller.WantGoAway(http2.ErrCodeNo)
	wait()
}
