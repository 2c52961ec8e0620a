package admin

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

// fakeHealth is a Health that tests switch.
type fakeHealth struct{ started, ready, alive atomic.Bool }

func (h *fakeHealth) Started() bool { return h.started.Load() }
func (h *fakeHealth) Ready() bool   { return h.ready.Load() }
func (h *fakeHealth) Alive() bool   { return h.alive.Load() }

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// stopAtEnd shuts a server down when the test ends, and checks that it went
// without trouble.
func stopAtEnd(t *testing.T, s *Server) {
	t.Helper()
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		err := s.Shutdown(ctx)
		testkit.Want(t, err == nil, "Shutdown: %v", err)
		err = <-s.Failed()
		testkit.Want(t, err == nil, "Failed: %v", err)
	})
}

// loopback returns a listener on a free port.
func loopback(t *testing.T) net.Listener {
	t.Helper()
	on := testkit.Listen(t)
	return on
}

func startProbes(t *testing.T, health Health) *Server {
	t.Helper()
	s := ServeProbes(loopback(t), health, quiet())
	stopAtEnd(t, s)
	return s
}

// exchange sends one request and returns the whole answer except the date.
func exchange(t *testing.T, address, request string) string {
	t.Helper()
	conn, err := net.DialTimeout("tcp", address, 10*time.Second)
	testkit.Must(t, err)
	defer conn.Close()
	testkit.Must(t, conn.SetDeadline(time.Now().Add(30*time.Second)))
	fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", request)
	var answer strings.Builder
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		if line := lines.Text(); !strings.HasPrefix(line, "Date: ") {
			answer.WriteString(line + "\n")
		}
	}
	return answer.String()
}

// The probes answer as gruf-relay's did, to the byte.
func TestProbeAnswers(t *testing.T) {
	const (
		good = "HTTP/1.1 200 OK\nContent-Length: 0\nConnection: close\n\n"
		bad  = "HTTP/1.1 503 Service Unavailable\nContent-Length: 0\nConnection: close\n\n"
	)
	health := &fakeHealth{}
	address := startProbes(t, health).Addr().String()
	for path, state := range map[string]*atomic.Bool{
		"/startup": &health.started, "/readiness": &health.ready, "/liveness": &health.alive,
	} {
		for _, method := range []string{"GET", "POST", "DELETE"} {
			testkit.Equal(t, exchange(t, address, method+" "+path), bad, "%s %s before", method, path)
		}
		state.Store(true)
		for _, method := range []string{"GET", "POST", "DELETE"} {
			testkit.Equal(t, exchange(t, address, method+" "+path+"?verbose"), good, "%s %s after", method, path)
		}
	}
	for _, path := range []string{"/", "/startup/", "//startup", "/metrics", "/healthz"} {
		if got := exchange(t, address, "GET "+path); !strings.HasPrefix(got, "HTTP/1.1 404 Not Found\n") ||
			!strings.HasSuffix(got, "\n404 page not found\n") {
			t.Errorf("GET %s: %q", path, got)
		}
	}
}

// A handler that hangs cannot hold the end of the process.
func TestShutdownIsBounded(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(release) })
	s := serve(loopback(t), http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(entered)
		<-release
	}), maxConnections, quiet())
	conn, err := net.Dial("tcp", s.Addr().String())
	testkit.Must(t, err)
	defer conn.Close()
	fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	<-entered
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	testkit.Is(t, s.Shutdown(ctx), context.DeadlineExceeded, "Shutdown")
	err = <-s.Failed()
	testkit.Want(t, err == nil, "Failed: %v", err)
	testkit.Must(t, conn.SetReadDeadline(time.Now().Add(30*time.Second)))
	_, err = conn.Read(make([]byte, 1))
	testkit.Want(t, errors.Is(err, io.EOF), "the connection is still open: %v", err)
}

// A listener that dies is told of, because its process must not go on.
func TestDeadListenerIsReported(t *testing.T) {
	s := ServeProbes(loopback(t), &fakeHealth{}, quiet())
	testkit.Must(t, s.listener.Close())
	err := <-s.Failed()
	testkit.Want(t, err != nil, "no error of a closed listener")
	err = s.Shutdown(context.Background())
	testkit.Want(t, err == nil, "Shutdown: %v", err)
}

// After Release whoever else has the socket is asked, a request that was under
// way is answered, and nothing is said to have failed.
func TestReleasedServer(t *testing.T) {
	health := &fakeHealth{}
	health.ready.Store(true)
	on := tellingListener{loopback(t), make(chan struct{}, 1)}
	s := ServeProbes(on, health, quiet())
	stopAtEnd(t, s)
	conn, err := net.Dial("tcp", s.Addr().String())
	testkit.Must(t, err)
	defer conn.Close()
	<-on.accepted
	s.Release()
	err = <-s.Failed()
	testkit.Want(t, err == nil, "Failed: %v", err)
	if another, err := net.Dial("tcp", s.Addr().String()); err == nil {
		another.Close()
		t.Error("it listens on")
	}
	fmt.Fprint(conn, "GET /readiness HTTP/1.1\r\nHost: x\r\n\r\n")
	answer, err := io.ReadAll(conn)
	testkit.Want(t, err == nil && strings.HasPrefix(string(answer), "HTTP/1.1 200"), "%q, %v", answer, err)
}

// tellingListener tells of a connection that it has accepted.
type tellingListener struct {
	net.Listener
	accepted chan struct{}
}

func (l tellingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		l.accepted <- struct{}{}
	}
	return conn, err
}

// No test leaves a goroutine or a listener behind.
func TestMain(m *testing.M) { testkit.VerifyMain(m) }
