package caller

import (
	"context"
	"crypto/tls"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/internal/testkit/nameserver"
	"github.com/cabrank/cabrank/lab/internal/traffic"
)

// What is no address for grpc-go is told before it finds out, in words of its own.
func TestCheckTarget(t *testing.T) {
	for _, target := range []string{
		"localhost:50051", ":50051", "10.0.0.1:1", "[::1]:65535", "dns:///a.example:80", "dns://127.0.0.1:53/a:80",
		"dns:a:80", "unix:/tmp/x", "unix:///tmp/x", "unix-abstract:x", "passthrough:///a:80",
	} {
		err := CheckTarget(target)
		testkit.Want(t, err == nil, "%s: %v", target, err)
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
		testkit.RefusedBy(t, CheckTarget(target), want)
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
	s := &server{addr: "127.0.0.1:1"}
	for want, change := range map[string]func(*Options){
		"connections single":          func(*Options) {},
		"connections single with TLS": func(o *Options) { o.TLS = &tls.Config{MinVersion: tls.VersionTLS12} },
		"connections 7":               func(o *Options) { o.Strategy = 7 },
		"connections round-robin, DNS asked again every 30s at most (the default)": func(o *Options) { o.Strategy = RoundRobin },
	} {
		o := s.options(t, Way{}, "Unary", 1, "hello")
		change(&o)
		got := client(t, o).String()
		testkit.Want(t, strings.HasSuffix(got, want), "%s, want %s", got, want)
	}
}

func TestMostUnderWay(t *testing.T) {
	testkit.Equal(t, Single.MostUnderWay(), traffic.DefaultMost, "calls under way on one connection")
	got := PerCall.MostUnderWay()
	testkit.Want(t, got >= 1 && got <= traffic.DefaultMost, "with a connection for each %d", got)
}

// Round robin over a name: calls are spread evenly over its addresses, and when a
// connection ends the name is asked again, so that a new server gets its part.
func TestRoundRobinOverDNS(t *testing.T) {
	first := serveAt(t, "first", "tcp", "127.0.0.1:0", nil)
	_, port, _ := net.SplitHostPort(first.addr)
	second := serveAt(t, "second", "tcp", "127.0.0.2:"+port, nil)
	zone := nameserver.StartZone(t, "workers.test. 1 IN A 127.0.0.1", "workers.test. 1 IN A 127.0.0.2")
	o := first.options(t, Way{}, "Unary", 1, "hello")
	o.Strategy, o.DNSInterval = RoundRobin, 10*time.Millisecond
	o.Target = "dns://" + zone.Addr + "/workers.test:" + port
	c := client(t, o)
	got := c.String()
	testkit.Want(t, strings.HasSuffix(got, "DNS asked again every 10ms at most"), "%v", got)
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
	testkit.Want(t, seen["first"] == 50 && seen["second"] == 50, "shares %v", seen)
	serveAt(t, "third", "tcp", "127.0.0.3:"+port, nil)
	zone.Say("workers.test. 1 IN A 127.0.0.1", "workers.test. 1 IN A 127.0.0.3")
	second.web.Close()
	testkit.Eventually(t, 20*time.Second, "the third server to answer", func() bool { return call() == "third" })
}
