package relay

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/net/http2"

	"github.com/cabrank/cabrank/internal/testkit"
)

// R20: after ReleaseListeners another holder of the socket gets all callers, also those that
// wait in the kernel. Calls here go on, and health checks keep their answer until the
// connection ends.
func TestReleaseListeners(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) {
			g := newRig(t)
			_, accept := g.worker("w1", 1)
			address := map[string]string{"tcp": "127.0.0.1:0", "unix": filepath.Join(t.TempDir(), "door")}[network]
			shared, err := net.Listen(network, address)
			testkit.Must(t, err)
			successor := inherit(t, shared)
			defer successor.Close()
			stopped := g.serve(shared)
			caller := g.caller()
			caller.AnyOrder()
			askHealth(caller, 1, watchPath, "")
			caller.WantHeaders(1, noEnd)
			caller.WantDataBytes(1, []byte{0, 0, 0, 0, 2, 8, 1}, noEnd) // SERVING
			caller.WriteHeaders(3, end, request(hello)...)
			worker := accept()
			worker.WantHeaders(1, end)

			g.ReleaseListeners()
			stopped()
			for range 10 {
				conn, err := net.Dial(network, shared.Addr().String())
				testkit.Must(t, err)
				taken, err := successor.Accept()
				testkit.Must(t, err)
				testkit.Want(t, taken.RemoteAddr().String() == conn.LocalAddr().String(), "another connection was taken")
				taken.Close()
				conn.Close()
			}
			wait := g.drain(soon, nil)
			caller.WantGoAway(http2.ErrCodeNo)
			testkit.Want(t, g.Serving(), "it says that it does not serve")
			ping := caller.WantPing()
			reply(worker, 1)
			wantReply(caller, 3)
			caller.WritePingAck(ping)
			caller.WantGoAway(http2.ErrCodeNo)
			wait()
		})
	}
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
