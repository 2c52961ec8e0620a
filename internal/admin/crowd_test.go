package admin

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

// A probe is answered at once, however many connections somebody holds open,
// silent, in the middle of a request, or kept after one: the oldest go.
func TestProbesAreNotCrowdedOut(t *testing.T) {
	health := new(fakeHealth)
	health.alive.Store(true)
	s := startProbes(t, health)
	var held []net.Conn
	for _, beginning := range []string{"", "GET /liveness HTTP/1.1\r\nHost: x\r\n", "GET /liveness HTTP/1.1\r\nHost: x\r\n\r\n"} {
		for range maxConnections/2 + 1 {
			conn, err := net.Dial("tcp", s.Addr().String())
			testkit.Must(t, err)
			t.Cleanup(func() { _ = conn.Close() })
			_, err = io.WriteString(conn, beginning)
			testkit.Must(t, err)
			held = append(held, conn)
		}
		got := exchange(t, s.Addr().String(), "GET /liveness")
		testkit.Want(t, strings.HasPrefix(got, "HTTP/1.1 200 OK"), "after %d connections: %q", len(held), got)
	}
	first := held[0]
	testkit.Must(t, first.SetReadDeadline(time.Now().Add(30*time.Second)))
	_, err := first.Read(make([]byte, 1))
	testkit.Want(t, err != nil && !strings.Contains(err.Error(), "timeout"), "the oldest connection is still there: %v", err)
}

// Whoever comes when few descriptors are left has the oldest go, but for one that
// is alone.
func TestCrowdSparesDescriptors(t *testing.T) {
	on := testkit.Listen(t)
	defer on.Close()
	c := newCrowd(100)
	c.files = spareFiles
	var first net.Conn
	for i := range 3 {
		conn := testkit.Dial(t, on.Addr().String())
		if got := c.note(conn, http.StateNew); got != first {
			t.Errorf("with %d others %v goes, want %v", i, got, first)
		}
		first = conn
	}
}

func TestCrowd(t *testing.T) {
	c := newCrowd(2)
	conns := make([]net.Conn, 4)
	for i := range conns {
		conn, far := net.Pipe()
		t.Cleanup(func() { _ = conn.Close() })
		t.Cleanup(func() { _ = far.Close() })
		conns[i] = conn
	}
	for i, step := range []struct {
		conn  int
		state http.ConnState
		goes  int // -1: none
	}{
		{0, http.StateNew, -1},
		{1, http.StateNew, -1},
		{0, http.StateActive, -1},
		{2, http.StateNew, 1},
		{1, http.StateActive, -1}, // too late
		{1, http.StateClosed, -1},
		{2, http.StateClosed, -1},
		{3, http.StateNew, -1},
		{0, http.StateClosed, -1},
		{3, http.StateClosed, -1},
	} {
		var want net.Conn
		if step.goes >= 0 {
			want = conns[step.goes]
		}
		if got := c.note(conns[step.conn], step.state); got != want {
			t.Errorf("step %d: %v goes, want %v", i, got, want)
		}
	}
	testkit.Want(t, c.order.Len() == 0 && len(c.places) == 0, "left: %d in order, %d places", c.order.Len(), len(c.places))
}
