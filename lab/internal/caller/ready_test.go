package caller

import (
	"context"
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/lab/internal/traffic"
)

// Who is asked whether it understands a way says so, and no handler sees it.
func TestReady(t *testing.T) {
	s := serve(t, nil)
	for _, w := range ways() {
		for _, method := range methods {
			o := s.options(t, w, method, 1, "hello")
			o.Strategy = 3
			c := client(t, o)
			before := c.Opened()
			if err := c.Ready(t.Context()); err != nil || before != 0 || c.Opened() != 3 {
				t.Errorf("%s, %s: %v, %d connections, %d before", w, method, err, c.Opened(), before)
			}
		}
	}
	testkit.Equal(t, s.calls.Load(), 0, "calls that handlers have seen")
}

// onlyGRPC is a grpc-go server; calls counts what its handlers see.
func onlyGRPC(t *testing.T, calls *atomic.Int64) *server {
	t.Helper()
	l := testkit.Listen(t)
	g := grpc.NewServer(grpc.UnknownServiceHandler(func(any, grpc.ServerStream) error {
		calls.Add(1)
		return nil
	}))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = g.Serve(l)
	}()
	t.Cleanup(func() { g.Stop(); <-done })
	return &server{addr: l.Addr().String()}
}

// A server that speaks gRPC alone is told in a line, and no call is made.
func TestReadyTellsWhoSpeaksOnlyGRPC(t *testing.T) {
	var calls atomic.Int64
	s := onlyGRPC(t, &calls)
	for _, w := range []Way{{Protocol: Connect}, {Protocol: Connect, Codec: jsonWord}, {Protocol: GRPCWeb}} {
		for _, method := range methods {
			err := client(t, s.options(t, w, method, 1, "hello")).Ready(t.Context())
			want := `target "` + s.addr + `" does not speak ` + w.spoken() + ": /test.Service/" + method + " was answered with HTTP status 415 and the content type "
			testkit.Want(t, err != nil && strings.HasPrefix(err.Error(), want) && strings.Contains(err.Error(), "; try the "),
				"%s, %s: %v", w, method, err)
		}
	}
	testkit.Want(t, calls.Load() == 0, "%d calls were made", calls.Load())
}

// What else can be wrong is told in a line.
func TestReadyTells(t *testing.T) {
	s := serve(t, nil)
	old := serve(t, func(web *http.Server) { web.Protocols.SetUnencryptedHTTP2(false) })
	refuses := serve(t, func(web *http.Server) {
		web.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusHTTPVersionNotSupported) })
	})
	var calls atomic.Int64
	grpcOnly := onlyGRPC(t, &calls)
	closed := testkit.FreeAddress(t)
	secret := &tls.Config{MinVersion: tls.VersionTLS12}
	for _, tc := range []struct {
		name   string // for readers
		limit  time.Duration
		addr   string
		way    Way
		method string
		tls    *tls.Config
		want   []string
	}{
		{"no such method", time.Minute, s.addr, Way{Protocol: Connect}, "None", nil, []string{"has no /test.Service/None for callers by Connect (HTTP status 404)"}},
		{"nobody listens", 2 * askEvery, closed, Way{Protocol: Connect}, "Unary", nil, []string{"cannot be reached: dial tcp"}},
		{"nobody listens to gRPC", 2 * askEvery, closed, Way{}, "Unary", nil, []string{"cannot be reached: dial tcp " + closed + ": connect: connection refused"}},
		{"no TLS", time.Minute, s.addr, Way{}, "Unary", secret, []string{"cannot be reached: TLS handshake"}}, // at once
		{"HTTP/1.1 alone", time.Minute, old.addr, Way{Protocol: Connect}, "Unary", nil, []string{"does not answer over HTTP/2: ", "; try http 1.1"}},
		{"HTTP/2 alone", time.Minute, grpcOnly.addr, Way{Protocol: GRPCWeb, HTTP: one}, "Unary", nil, []string{"does not answer over HTTP/1.1: ", "; try http 2"}},
		{"no HTTP/1.1", time.Minute, refuses.addr, Way{Protocol: Connect, HTTP: one}, "Unary", nil, []string{"takes no calls over HTTP/1.1 (HTTP status 505): try http 2"}},
	} {
		o := s.options(t, tc.way, tc.method, 1, "hello")
		o.Target, o.TLS = tc.addr, tc.tls
		ctx, cancel := context.WithTimeout(t.Context(), tc.limit)
		err := client(t, o).Ready(ctx)
		testkit.Equal(t, ctx.Err() != nil, (tc.limit < time.Minute), "%s: told at the end of its time", tc.name)
		cancel()
		for _, part := range append(tc.want, `target "`+tc.addr+`" `) {
			testkit.Refused(t, err, part)
		}
	}
}

// Calls to nobody fail as those of grpc-go do.
func TestUnreachable(t *testing.T) {
	s := &server{addr: testkit.FreeAddress(t)}
	for _, w := range []Way{{}, {Protocol: Connect}} {
		for _, strategy := range []Strategy{Single, PerCall} {
			for _, method := range methods {
				o := s.options(t, w, method, 1, "hello")
				o.Strategy = strategy
				c := client(t, o)
				a := c.Call(t.Context(), traffic.Call{})
				if codes.Code(a.Code) != codes.Unavailable || !strings.Contains(a.Message, "connection refused") || c.Opened() != 0 {
					t.Errorf("%s, %v, %s: %+v", w, strategy, method, a)
				}
			}
		}
	}
}

// Over TLS versions are agreed upon, and a server that is not trusted is told.
func TestTLS(t *testing.T) {
	made := httptest.NewUnstartedServer(nil)
	made.StartTLS()
	config := made.TLS.Clone()
	made.Close()
	config.NextProtos = []string{"h2", "http/1.1"}
	s := serve(t, func(web *http.Server) {
		web.TLSConfig = config
		web.Protocols.SetHTTP2(true)
	})
	s.tls = made.Client().Transport.(*http.Transport).TLSClientConfig
	s.tls.NextProtos = nil
	for _, w := range append(ways()[1:], Way{Protocol: Connect, HTTP: one}) {
		for _, strategy := range []Strategy{Single, PerCall} {
			o := s.options(t, w, "Server", 1, "hello")
			o.Strategy = strategy
			c := client(t, o)
			testkit.Must(t, c.Ready(t.Context()))
			a := c.Call(t.Context(), traffic.Call{})
			testkit.Want(t, a.Code == 0 && a.Received.Messages == 3, "%s: %+v", w, a)
		}
	}
	o := s.options(t, Way{Protocol: Connect}, "Unary", 1, "hello")
	o.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	testkit.Refused(t, client(t, o).Ready(t.Context()), "x509:")
}

// A connection that is full has calls wait, as grpc-go has them.
func TestFullConnection(t *testing.T) {
	s := serve(t, func(web *http.Server) { web.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: 2} })
	c := client(t, s.options(t, Way{Protocol: Connect}, "Bidi", 1, "hello"))
	testkit.Must(t, c.Ready(t.Context()))
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			a := c.Call(t.Context(), traffic.Call{})
			testkit.Want(t, a.Code == 0, "%+v", a)
		})
	}
	all.Wait()
	testkit.Want(t, c.Opened() == 1, "%d connections", c.Opened())
}

// A Unix socket is called by its path.
func TestUnixSocket(t *testing.T) {
	s := serveAt(t, "one", "unix", t.TempDir()+"/s", nil)
	for _, w := range []Way{{}, {Protocol: GRPCWeb}} {
		for _, strategy := range []Strategy{Single, PerCall} {
			o := s.options(t, w, "Client", 2, "hello")
			o.Strategy = strategy
			c := client(t, o)
			a := c.Call(t.Context(), traffic.Call{})
			testkit.Want(t, a.Code == 0 && c.Opened() == 1, "%s, %v: %+v, %d connections", w, strategy, a, c.Opened())
		}
	}
}
