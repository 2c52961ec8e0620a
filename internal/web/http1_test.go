package web

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cabrank/cabrank/internal/door"
	"github.com/cabrank/cabrank/internal/testkit"
)

// owned is a connection that notes what it is told.
type owned struct {
	net.Conn

	mu   sync.Mutex
	told []string
}

func (c *owned) note(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.told = append(c.told, what)
}

func (c *owned) heard() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(c.told, " ")
}

func (c *owned) Busy()    { c.note("busy") }
func (c *owned) Idle()    { c.note("idle") }
func (c *owned) Refused() { c.note("refused") }

func (c *owned) Hijacked() { c.note("hijacked") }

func (c *owned) Close() error {
	c.note("closed")
	return c.Conn.Close()
}

// ask sends text over a connection of its own and returns all that comes back until
// the server closes it.
func ask(t *testing.T, s *HTTP1, c *owned, text string) string {
	t.Helper()
	ours, theirs := net.Pipe()
	c.Conn = ours
	s.ServeConn(c)
	go func() { _, _ = io.WriteString(theirs, text) }() // ends when it is read, or closed
	got, err := io.ReadAll(theirs)
	testkit.Must(t, err)
	_ = theirs.Close()
	return string(got)
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// No connection is lost to a change of the limits, however many there are.
func TestConfigureLosesNoConnection(t *testing.T) {
	limits := Limits{Head: 5 * time.Second, HeadBytes: 4096}
	s := NewHTTP1(limits, nil, nil, quiet())
	defer s.Close()
	var over atomic.Bool
	var changes sync.WaitGroup
	changes.Go(func() { // until over
		for !over.Load() {
			s.Configure(limits)
		}
	})
	const conns = 200
	lost := 0
	for range conns {
		if got := ask(t, s, new(owned), "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); !strings.Contains(got, "200 OK") {
			lost++
		}
	}
	over.Store(true)
	changes.Wait()
	testkit.Want(t, lost == 0, "%d of %d connections were lost", lost, conns)
}

// The owner of a connection hears of its request, of which there is one.
func TestOwnerIsTold(t *testing.T) {
	const get, post = "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "POST /a.B/C HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"
	for name, c := range map[string]struct{ sent, told, status string }{
		"the page":     {get, "busy closed", "200 OK"},
		"a call":       {post, "busy refused closed", "505 "},
		"two requests": {get + post, "busy closed", "200 OK"},
		"no request":   {"GET / HTTP/1.1\r\nHost: ", "busy closed", ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := NewHTTP1(Limits{Head: 5 * time.Second, HeadBytes: 4096}, nil, nil, quiet())
				defer s.Close()
				conn := new(owned)
				got := ask(t, s, conn, c.sent)
				synctest.Wait()
				testkit.Equal(t, strings.Join(conn.told, " "), c.told, "told")
				if c.status == "" && got != "" || !strings.HasPrefix(got, "HTTP/1.1 "+c.status) && c.status != "" || strings.Count(got, "HTTP/1.1 ") > 1 {
					t.Errorf("got %q, want %s", got, c.status)
				}
			})
		})
	}
}

// A head that does not come in time, or is too large, ends its connection; other
// limits hold for connections that come after them.
func TestHeadLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewHTTP1(Limits{Head: 5 * time.Second, HeadBytes: 1}, nil, nil, quiet())
		defer s.Close()
		large := "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX: " + strings.Repeat("x", 10<<10) + "\r\n\r\n"
		slow := "GET / HTTP/1.1\r\nX: "
		for _, limits := range []struct {
			head   time.Duration
			status string
		}{{5 * time.Second, "HTTP/1.1 431 "}, {7 * time.Second, "HTTP/1.1 200 "}} {
			began := time.Now()
			if got := ask(t, s, new(owned), slow); got != "" || time.Since(began) != limits.head {
				t.Errorf("%q after %v, want the end after %v", got, time.Since(began), limits.head)
			}
			if got := ask(t, s, new(owned), large); !strings.HasPrefix(got, limits.status) {
				t.Errorf("got %q, want %s", got, limits.status)
			}
			s.Configure(Limits{Head: 7 * time.Second, HeadBytes: 64 << 10})
		}
	})
}

// After Close a connection is closed that comes, and Configure changes nothing.
func TestServeConnAfterClose(t *testing.T) {
	s := NewHTTP1(Limits{Head: time.Second}, nil, nil, quiet())
	s.Close()
	s.Configure(Limits{Head: time.Second})
	testkit.Equal(t, ask(t, s, new(owned), ""), "", "the answer")
	s.Close()
}

// The page names the address that was asked for, if that is one.
func TestPage(t *testing.T) {
	for host, want := range map[string]string{
		"greeter.test:50051":             "greeter.test:50051",
		"greeter.test":                   "greeter.test:80",
		"[::1]:8080":                     "[::1]:8080",
		"::1":                            "[::1]:80",
		"":                               "HOST:PORT",
		"a;rm -rf:80":                    "HOST:PORT",
		"$(reboot)":                      "HOST:PORT",
		"<script>:80":                    "HOST:PORT",
		strings.Repeat("a", 300) + ":80": "HOST:PORT",
	} {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil)
		r.Host = host
		ServePage(w, r)
		testkit.Want(t, w.Code == http.StatusOK && strings.Contains(w.Body.String(), "\n  grpcurl -plaintext "+want+" list\n"),
			"%q: %d %q", host, w.Code, w.Body)
		testkit.Equal(t, w.Header().Get("Content-Type"), textPlain, "content-type")
	}
}

func TestIsPage(t *testing.T) {
	for request, want := range map[string]bool{
		"GET /": true, "HEAD /": true, "POST /": false, "GET //": false, "GET /x": false, "OPTIONS *": false, "GET ": false,
	} {
		method, path, _ := strings.Cut(request, " ")
		testkit.Want(t, IsPage(method, path) == want, "%q: got %t", request, !want)
	}
}

// A handler of a path may take its connection over, whose owner hears of that. Other
// paths have none, which who asks for a WebSocket is told.
func TestRoutes(t *testing.T) {
	routes := map[string]http.Handler{"/ws": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, buffers, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = buffers.WriteString("taken over")
		_ = buffers.Flush()
		_ = conn.Close()
	})}
	s := NewHTTP1(Limits{Head: 5 * time.Second, HeadBytes: 4096}, routes, nil, quiet())
	defer s.Close()
	for path, want := range map[string]struct{ got, told string }{
		"/ws":  {"taken over", "busy hijacked closed"},
		"/ws/": {"HTTP/1.1 404 ", "busy refused closed"},
	} {
		conn := new(owned)
		got := ask(t, s, conn, "GET "+path+" HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: WebSocket\r\n\r\n")
		testkit.Eventually(t, 30*time.Second, "the end", func() bool { return conn.heard() == want.told })
		testkit.Want(t, strings.HasPrefix(got, want.got), "%s: got %q", path, got)
	}
}

// A proxy says whose a request is, and nobody else does.
func TestRequestsBehindProxy(t *testing.T) {
	proxies := door.Proxies{netip.MustParsePrefix("10.0.0.0/8")}
	for name, c := range map[string]struct {
		proxies    door.Proxies
		peer, want string
		said       []string
	}{
		"a browser":          {proxies, "10.0.0.1:4711", "203.0.113.7:0", []string{"1.1.1.1, 203.0.113.7"}},
		"several fields":     {proxies, "10.0.0.1:4711", "203.0.113.7:0", []string{"1.1.1.1", "203.0.113.7:80, 10.0.0.2"}},
		"IPv6":               {proxies, "[::ffff:10.0.0.1]:4711", "[2001:db8::7]:0", []string{"[2001:db8::7]:80"}},
		"nobody":             {proxies, "10.0.0.1:4711", "10.0.0.1:4711", nil},
		"malformed":          {proxies, "10.0.0.1:4711", "10.0.0.1:4711", []string{"203.0.113.7, x"}},
		"a liar":             {proxies, "192.0.2.1:4711", "192.0.2.1:4711", []string{"203.0.113.7"}},
		"a socket":           {proxies, "@", "@", []string{"203.0.113.7"}},
		"no proxies at all":  {nil, "10.0.0.1:4711", "10.0.0.1:4711", []string{"203.0.113.7"}},
		"a proxy of proxies": {proxies, "10.0.0.1:4711", "10.0.0.1:4711", []string{"10.0.0.3, 10.0.0.2"}},
	} {
		r := httptest.NewRequest(http.MethodGet, "/ws", nil)
		r.RemoteAddr, r.Header["X-Forwarded-For"] = c.peer, c.said
		got := ""
		behind(c.proxies, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.RemoteAddr })).ServeHTTP(nil, r)
		testkit.Want(t, got == c.want, "%s: got %s, want %s", name, got, c.want)
	}
}

// Nobody over HTTP/1 says who calls, in the head or behind the body.
func TestForgedClaims(t *testing.T) {
	for _, name := range []string{"X-Cabrank-User", "x-cabrank-socket", "X-CABRANK-CLIENT"} {
		seen := make(chan string, 1)
		s := NewHTTP1(Limits{Head: 5 * time.Second, HeadBytes: 4096}, map[string]http.Handler{"/": http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			seen <- fmt.Sprint(r.Header, string(body), err, r.Trailer)
		})}, nil, quiet())
		ask(t, s, new(owned), "POST / HTTP/1.1\r\nHost: x\r\n"+name+": ann\r\n"+name+": bob\r\nX-Kept: 1\r\nTrailer: "+name+", X-Sum\r\n"+
			"Transfer-Encoding: chunked\r\n\r\n1\r\nb\r\n0\r\n"+name+": ann\r\nX-Sum: 1\r\n\r\n")
		testkit.Equal(t, <-seen, "map[X-Kept:[1]]b<nil> map[]", "%s", name)
		s.Close()
	}
}
