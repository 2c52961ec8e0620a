package caller

import (
	"context"
	"crypto/tls"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/internal/testkit/nameserver"
	"github.com/cabrank/cabrank/lab/internal/traffic"
)

func TestGRPCReady(t *testing.T) {
	s := serveGRPC(t, "tcp", "127.0.0.1:0", "one")
	c := grpcClientOf(t, s, "Echo", func(o *Options) { o.Strategy = 5 })
	if c.Opened() != 0 {
		t.Errorf("%d connections before Ready", c.Opened())
	}
	if err := c.Ready(t.Context()); err != nil || c.Opened() != 5 {
		t.Errorf("%v, %d connections", err, c.Opened())
	}
}

// Who cannot be reached is told in one line, and calls fail at once.
func TestGRPCUnreachable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	addr := l.Addr().String()
	l.Close()
	c := grpcClientOf(t, &grpcServer{addr: addr}, "Echo", nil)
	if answer := c.Call(t.Context(), traffic.Call{}); codes.Code(answer.Code) != codes.Unavailable || c.Opened() != 0 {
		t.Errorf("%+v, %d opened", answer, c.Opened())
	}
	want := `target "` + addr + `" cannot be reached: dial tcp ` + addr + ": connect: connection refused"
	if err := c.Ready(cancelled()); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// What is no address for grpc-go is told before it finds out, in words of its own.
func TestCheckTarget(t *testing.T) {
	for _, target := range []string{
		"localhost:50051", ":50051", "10.0.0.1:1", "[::1]:65535", "dns:///a.example:80", "dns://127.0.0.1:53/a:80",
		"dns:a:80", "unix:/tmp/x", "unix:///tmp/x", "unix-abstract:x", "passthrough:///a:80",
	} {
		if err := CheckTarget(target); err != nil {
			t.Errorf("%s: %v", target, err)
		}
	}
	for target, want := range map[string]string{
		"http://localhost:50051": `address "http://localhost:50051": want host:port without http://, such as localhost:50051`,
		"https://localhost":      `address "https://localhost": want host:port without https://, such as localhost:8080`,
		"foo://bar:1/x":          `address "foo://bar:1/x": want host:port without foo://, such as localhost:8080`,
		"localhost":              `address "localhost" has no port: want host:port, such as localhost:8080, or unix:///path`,
		"":                       `address "" has no port: want host:port, such as localhost:8080, or unix:///path`,
		"[::1]":                  `address "[::1]" has no port: want host:port, such as localhost:8080, or unix:///path`,
		"localhost:":             `address "localhost:" has no port: want host:port, such as localhost:8080, or unix:///path`,
		"dns:///a":               `address "dns:///a" has no port: want host:port, such as localhost:8080, or unix:///path`,
		"::1":                    `address "::1": want host:port, such as localhost:8080, or unix:///path`,
		"a:http":                 `address "a:http": want host:port, such as localhost:8080, or unix:///path`,
		"a:99999":                `address "a:99999": want host:port, such as localhost:8080, or unix:///path`,
		"a:1/path":               `address "a:1/path": want host:port, such as localhost:8080, or unix:///path`,
	} {
		if err := CheckTarget(target); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", target, err, want)
		}
	}
}

func TestGRPCNewRefuses(t *testing.T) {
	all := func(uint64) [][]byte { return nil }
	for want, o := range map[string]Options{
		`method "": want /package.Service/Method`:      {Target: "a:1", Messages: all},
		`method "a.B/C": want /package.Service/Method`: {Target: "a:1", Messages: all, Method: "a.B/C"},
		`method "/a.B": want /package.Service/Method`:  {Target: "a:1", Messages: all, Method: "/a.B"},
		`method "//C": want /package.Service/Method`:   {Target: "a:1", Messages: all, Method: "//C"},
		`internal error: a caller without messages`:    {Target: "a:1", Method: "/a.B/C"},
	} {
		if _, err := New(o); err == nil || err.Error() != want {
			t.Errorf("%+v: %v, want %s", o, err, want)
		}
	}
}

func TestParseStrategy(t *testing.T) {
	for _, text := range []string{"single", "per-call", "round-robin", "1", "20", "10000"} {
		if s, err := ParseStrategy(text); err != nil || s.String() != text {
			t.Errorf("%s: %v, %v", text, s, err)
		}
	}
	for _, text := range []string{"", "0", "-1", "10001", "pool", "1.5"} {
		if s, err := ParseStrategy(text); err == nil {
			t.Errorf("%q is read as %v", text, s)
		}
	}
}

func TestClientInWords(t *testing.T) {
	s := &grpcServer{addr: "127.0.0.1:1"}
	for want, change := range map[string]func(*Options){
		"connections single": nil,
		"connections 7":      func(o *Options) { o.Strategy = 7 },
		"connections round-robin, DNS asked again every 30s at most (the default)": func(o *Options) { o.Strategy = RoundRobin },
	} {
		if got := grpcClientOf(t, s, "Echo", change).String(); !strings.HasSuffix(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestMostUnderWay(t *testing.T) {
	if got := Single.MostUnderWay(); got != traffic.DefaultMost {
		t.Errorf("on one connection %d", got)
	}
	if got := PerCall.MostUnderWay(); got < 1 || got > traffic.DefaultMost {
		t.Errorf("with a connection for each %d", got)
	}
}

// Round robin over a name: calls are spread evenly over its addresses, and when a
// connection ends the name is asked again, so that a new server gets its part.
func TestRoundRobinOverDNS(t *testing.T) {
	first := serveGRPC(t, "tcp", "127.0.0.1:0", "first")
	_, port, _ := net.SplitHostPort(first.addr)
	second := serveGRPC(t, "tcp", "127.0.0.2:"+port, "second")
	zone := nameserver.StartZone(t, "workers.test. 1 IN A 127.0.0.1", "workers.test. 1 IN A 127.0.0.2")
	c := grpcClientOf(t, first, "Echo", func(o *Options) {
		o.Strategy, o.DNSInterval = RoundRobin, 10*time.Millisecond
		o.Target = "dns://" + zone.Addr + "/workers.test:" + port
	})
	if got := c.String(); !strings.HasSuffix(got, "DNS asked again every 10ms at most") {
		t.Error(got)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	testkit.Must(t, c.Ready(ctx))
	call := func() string { return c.Call(ctx, traffic.Call{}).Worker }
	seen := map[string]int{}
	testkit.Eventually(t, 20*time.Second, "both servers to answer", func() bool { seen[call()]++; return seen["second"] > 0 && seen["first"] > 0 })
	clear(seen)
	for range 100 {
		seen[call()]++
	}
	if seen["first"] != 50 || seen["second"] != 50 {
		t.Errorf("shares %v", seen)
	}
	serveGRPC(t, "tcp", "127.0.0.3:"+port, "third")
	zone.Say("workers.test. 1 IN A 127.0.0.1", "workers.test. 1 IN A 127.0.0.3")
	second.grpc.Stop()
	testkit.Eventually(t, 20*time.Second, "the third grpcServer to answer", func() bool { return call() == "third" })
}

// A server without TLS fails callers with it at once, not when their time is over.
func TestReadyTellsThatThereIsNoTLS(t *testing.T) {
	s := serveGRPC(t, "tcp", "127.0.0.1:0", "a")
	c := grpcClientOf(t, s, "Echo", func(o *Options) { o.TLS = &tls.Config{MinVersion: tls.VersionTLS12} })
	if err := c.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "TLS handshake") {
		t.Errorf("got %v", err)
	}
	if text := c.String(); !strings.HasSuffix(text, "connections single with TLS") {
		t.Errorf("described as %q", text)
	}
}
