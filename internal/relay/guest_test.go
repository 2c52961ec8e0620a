package relay

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/internal/web"
)

// withHTTP1 serves callers over HTTP/1 as cmd/cabrank does.
func withHTTP1(t testing.TB) func(*Options) {
	t.Helper()
	server := web.NewHTTP1(web.Limits{Head: handshake, HeadBytes: 16 << 10}, nil, nil, slog.New(slog.DiscardHandler))
	t.Cleanup(server.Close)
	return func(o *Options) { o.HTTP1 = func(g *Guest) { server.ServeConn(g) } }
}

const getPage = "GET / HTTP/1.1\r\nHost: greeter.test:50051\r\n\r\n"

// http1Caller is a caller over HTTP/1 that has its connection open.
type http1Caller struct {
	net.Conn
	t testing.TB
	r *bufio.Reader
}

func newHTTP1Caller(t testing.TB, nc net.Conn) *http1Caller {
	t.Helper()
	t.Cleanup(func() { nc.Close() })
	return &http1Caller{Conn: nc, t: t, r: bufio.NewReader(nc)}
}

func (c *http1Caller) send(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		c.t.Fatal(err)
	}
}

// want takes one answer, and returns it with its body.
func (c *http1Caller) want(status int) (answer *http.Response, body string) {
	c.t.Helper()
	answer, err := http.ReadResponse(c.r, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	all, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != status {
		c.t.Fatalf("status %d, want %d; %v after %q", answer.StatusCode, status, err, all)
	}
	return answer, string(all)
}

// wantEnd takes the end of the connection, and nothing in front of it.
func (c *http1Caller) wantEnd() {
	c.t.Helper()
	if rest, err := io.ReadAll(c.r); len(rest) > 0 {
		c.t.Errorf("%q before the end, %v", rest, err)
	}
}

// pipeHTTP1 is a caller over HTTP/1 in memory.
func (g *rig) pipeHTTP1(address string) *http1Caller {
	g.t.Helper()
	ours, theirs := net.Pipe()
	if address == "" {
		g.ServeConn(ours)
	} else {
		g.ServeConn(addressed{ours, address})
	}
	return newHTTP1Caller(g.t, theirs)
}

func (g *rig) guests() (n int) {
	g.each(func(st *shardState) { n += len(st.guests) })
	return n
}

// Over TCP and over a Unix socket a person that asks the port learns what it speaks,
// however the request comes; a call by HTTP/1 is refused, and workers see nothing of it.
// HTTP/2 beside it goes on.
func TestHTTP1(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) {
			g := newRig(t, withHTTP1(t), func(o *Options) { o.Shards = 2 })
			address := g.addr
			if network == "unix" {
				address = filepath.Join(t.TempDir(), "door")
				ln, err := net.Listen(network, address)
				if err != nil {
					t.Fatal(err)
				}
				served := make(chan error, 1)
				go func() { served <- g.Serve(ln) }() // ended by Close
			}
			g.Reconfigure(options(nil)) // which keeps the server of HTTP/1
			good := g.caller()
			askHealth(good, 1, checkPath, "")
			good.WantHeaders(1, noEnd)
			ask := func(text string, piece, status int) (body string) {
				t.Helper()
				nc, err := net.Dial(network, address)
				if err != nil {
					t.Fatal(err)
				}
				c := newHTTP1Caller(t, nc)
				for ; text != ""; text = text[min(piece, len(text)):] {
					c.send(text[:min(piece, len(text))])
				}
				answer, body := c.want(status)
				if !answer.Close {
					t.Error("the caller was not told that the connection ends")
				}
				c.wantEnd()
				return body
			}
			for _, piece := range []int{1, 5, len(getPage)} {
				if body := ask(getPage, piece, http.StatusOK); !strings.Contains(body, "grpcurl -plaintext greeter.test:50051 list") {
					t.Errorf("body %q", body)
				}
			}
			if body := ask("POST /a.B/C HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc", 3, http.StatusHTTPVersionNotSupported); !strings.Contains(body, "this port speaks HTTP/2") {
				t.Errorf("body %q", body)
			}
			testkit.Eventually(t, soon, "their places to be free", func() bool { return g.connections.Load() == 1 && g.guests() == 0 })
			if n := g.disconnectedFor("not_http2"); n != 1 {
				t.Errorf("%d connections are counted as wrong, want 1", n)
			}
		})
	}
}

// slowHTTP1 serves requests one after the other, each when it is told to.
func slowHTTP1(t testing.TB, busy, release chan struct{}) func(*Options) {
	t.Helper()
	page := func(w http.ResponseWriter, _ *http.Request) {
		busy <- struct{}{}
		<-release
		_, _ = io.WriteString(w, "done")
	}
	return func(o *Options) {
		o.HTTP1 = func(g *Guest) {
			server := &http.Server{
				Handler: http.HandlerFunc(page), ReadHeaderTimeout: handshake,
				ConnState: func(_ net.Conn, state http.ConnState) {
					if state == http.StateActive {
						g.Busy()
					}
				},
			}
			server.SetKeepAlivesEnabled(false)
			_ = server.Serve(&once{Conn: g})
		}
	}
}

// once is a listener of one connection.
type once struct {
	net.Conn

	taken bool
}

func (l *once) Accept() (net.Conn, error) {
	if l.taken {
		return nil, net.ErrClosed
	}
	l.taken = true
	return l.Conn, nil
}

func (l *once) Addr() net.Addr { return l.LocalAddr() }
func (l *once) Close() error   { return nil }

// R17: a drain waits a second for requests that may be on their way, serves them, and waits
// for answers.
func TestDrainOfGuests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy, release := make(chan struct{}), make(chan struct{})
		g := newPipeRig(t, slowHTTP1(t, busy, release))
		silent, late, slow := g.pipeHTTP1(""), g.pipeHTTP1(""), g.pipeHTTP1("")
		silent.send("GET")
		late.send(getPage[:5])
		go func() { slow.send(getPage) }() // ends when it is read
		<-busy
		synctest.Wait()
		wait := g.drain(10*time.Second, nil)
		began := time.Now()
		pass(finalGoAway / 2)
		go func() { late.send(getPage[5:]) }() // ends when it is read
		<-busy
		silent.wantEnd()
		wantTook(t, began, finalGoAway)
		pass(3 * time.Second)
		for range 2 {
			release <- struct{}{}
		}
		for _, c := range []*http1Caller{late, slow} {
			c.want(http.StatusOK)
			c.wantEnd()
		}
		wait()
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("the drain took %v", took)
		}
	})
}

// R17: an answer that does not come is waited for as long as a call.
func TestDrainDoesNotHangOnGuests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy, release := make(chan struct{}), make(chan struct{})
		g := newPipeRig(t, slowHTTP1(t, busy, release))
		c := g.pipeHTTP1("")
		go func() { c.send(getPage) }() // ends when it is read
		<-busy
		began := time.Now()
		g.Drain(5*time.Second, nil)
		if took := time.Since(began); took > 8*time.Second {
			t.Errorf("the drain took %v", took)
		}
		c.wantEnd()
		release <- struct{}{}
	})
}

// Who has taken a connection over has the time to say goodbye at the end of a drain.
func TestDrainLetsGuestsSayGoodbye(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		taken := make(chan *Guest, 1)
		g := newPipeRig(t, func(o *Options) {
			o.HTTP1 = func(guest *Guest) {
				guest.Hijacked()
				taken <- guest
			}
		})
		c := g.pipeHTTP1("")
		go func() { c.send(getPage) }() // ends when it is read
		guest, drained := <-taken, make(chan int)
		go func() { drained <- g.Drain(0, nil) }()
		pass(messageTime / 2)
		go io.WriteString(guest.Conn, "bye")
		said := make([]byte, 3)
		if _, err := io.ReadFull(c.r, said); err != nil || string(said) != "bye" {
			t.Errorf("got %q, %v", said, err)
		}
		guest.Close()
		<-drained
	})
}

// R15: until it has a request a connection of HTTP/1 makes room like any other; then it
// stays.
func TestGuestsMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit, guests = 16, 16 / guestShare
		busy, release := make(chan struct{}), make(chan struct{})
		g := newPipeRig(t, slowHTTP1(t, busy, release), func(o *Options) { o.Limits.Connections = limit })
		silent := g.pipeHTTP1("192.0.2.1")
		silent.send("GET")
		for range guests - 1 {
			g.askSlowly("192.0.2.1", busy)
		}
		callers := []*testkit.Peer{}
		enter := func(address string, want bool) {
			t.Helper()
			p, in := g.pipeFrom(address)
			if in != want {
				t.Fatalf("caller %d was let in: %t", len(callers), in)
			}
			if in {
				p.WriteHeaders(1, end, request(hello)...) // it waits for a worker
				callers = append(callers, p)
			}
		}
		for n := range limit - guests {
			enter(fmt.Sprintf("192.0.2.%d", 2+n/2), true)
		}
		enter("192.0.2.8", true)
		silent.wantEnd()
		enter("192.0.2.9", false)
		if n := g.disconnectedFor("make_room"); n != 1 {
			t.Errorf("%d connections made room, want 1", n)
		}
		for range guests - 1 {
			release <- struct{}{}
		}
		synctest.Wait()
	})
}

// askSlowly has a caller over HTTP/1 make a request, and returns when that is under
// way.
func (g *rig) askSlowly(address string, busy chan struct{}) {
	c := g.pipeHTTP1(address)
	go func() { // ends with the answer
		c.send(getPage)
		c.want(http.StatusOK)
	}()
	<-busy
}

// Connections of HTTP/1 get a quarter of all places, for they cost more than those of
// HTTP/2: the one without a request for longest goes for a new one, and if all have
// one the new one goes.
func TestGuestsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit, guests = 16, 16 / guestShare
		busy, release := make(chan struct{}), make(chan struct{})
		g := newPipeRig(t, slowHTTP1(t, busy, release), func(o *Options) { o.Limits.Connections = limit })
		var idle []*http1Caller
		for range guests + 2 {
			c := g.pipeHTTP1("")
			c.send("GET")
			synctest.Wait()
			idle = append(idle, c)
		}
		idle[0].wantEnd()
		idle[1].wantEnd()
		for range guests {
			g.askSlowly("", busy)
		}
		for _, c := range idle[2:] {
			c.wantEnd()
		}
		if n := g.disconnectedFor("make_room"); n != guests+2 {
			t.Errorf("%d made room, want %d", n, guests+2)
		}
		last := g.pipeHTTP1("")
		last.send("GET")
		last.wantEnd()
		if n := g.disconnectedFor("too_many"); n != 1 || g.guests() != guests {
			t.Errorf("%d were refused and %d are there, want 1 and %d", n, g.guests(), guests)
		}
		for range guests {
			release <- struct{}{}
		}
		synctest.Wait()
	})
}

// A flood of heads that do not end takes the places of guests, for as long as heads
// may take; others are let in and served.
func TestSlowHeadsBesideOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 64
		g := newPipeRig(t, withHTTP1(t), func(o *Options) { o.Limits.Connections = limit })
		var all []*http1Caller
		for range 3 * limit {
			ours, theirs := net.Pipe()
			g.ServeConn(addressed{ours, "192.0.2.1"})
			c := newHTTP1Caller(t, theirs)
			go func() { _, _ = io.WriteString(c, "GET / HTTP/1.1\r\nX: ") }() // ends when it is read, or closed
			all = append(all, c)
			synctest.Wait()
		}
		if n := g.connections.Load(); n > limit/guestShare {
			t.Errorf("it has %d connections", n)
		}
		for n := range uint32(limit) {
			good, in := g.pipeFrom(fmt.Sprintf("192.0.2.%d", 2+n%8))
			if !in {
				t.Fatalf("caller %d was turned away", n)
			}
			askHealth(good, 1, checkPath, "")
			good.WantHeaders(1, noEnd)
		}
		pass(2 * handshake)
		if n := g.guests(); n != 0 {
			t.Errorf("%d slow heads are left", n)
		}
		for _, c := range all {
			c.wantEnd()
		}
	})
}

// HTTP/1 that is ambiguous or broken is refused or served by net/http; nothing is
// passed on, and the relay outlives it.
func TestHostileHTTP1(t *testing.T) {
	g := newRig(t, withHTTP1(t))
	_, accept := g.worker("w1", 1)
	for name, c := range map[string]struct {
		sent string
		want []string // of each answer the status
	}{
		"pipelined":          {strings.Repeat(getPage, 3) + "GET /x HTTP/1.1\r\nHost: x\r\n\r\n" + getPage, []string{"200"}},
		"both lengths":       {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + getPage, []string{"505"}},
		"both, of the page":  {"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + getPage, []string{"200"}},
		"two lengths":        {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef", []string{"400"}},
		"a bad length":       {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: +5\r\n\r\nabcde", []string{"400"}},
		"a coding":           {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n", []string{"501"}},
		"a bad method":       {"G@T / HTTP/1.1\r\nHost: x\r\n\r\n", []string{"400"}},
		"an odd method":      {"BREW / HTTP/1.1\r\nHost: x\r\n\r\n", []string{"505"}},
		"a tunnel":           {"CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n", []string{"505"}},
		"the whole server":   {"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", []string{"505"}},
		"no host":            {"GET / HTTP/1.1\r\n\r\n", []string{"400"}},
		"two hosts":          {"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", []string{"400"}},
		"a space in a name":  {"GET / HTTP/1.1\r\nHost : a\r\n\r\n", []string{"400"}},
		"an old one":         {"GET / HTTP/1.0\r\n\r\n", []string{"200"}},
		"upgrade to h2c":     {"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, close\r\nUpgrade: h2c\r\n\r\n", []string{"200"}},
		"a later preface":    {getPage + http2.ClientPreface, []string{"200"}},
		"a large head":       {"GET / HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 64<<10), []string{"431"}},
		"a body, not wanted": {"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\nabc", []string{"200"}},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("tcp", g.addr)
			if err != nil {
				t.Fatal(err)
			}
			caller := newHTTP1Caller(t, conn)
			if err := conn.SetDeadline(time.Now().Add(2 * soon)); err != nil {
				t.Fatal(err)
			}
			go func() { _, _ = io.WriteString(conn, c.sent) }() // ends when it is read, or closed
			var got []string
			for {
				answer, err := http.ReadResponse(caller.r, nil)
				if err != nil {
					break
				}
				_, _ = io.Copy(io.Discard, answer.Body)
				got = append(got, fmt.Sprint(answer.StatusCode))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("answered %v, want %v", got, c.want)
			}
		})
	}
	caller := g.caller()
	caller.WriteHeaders(1, end, request(hello)...)
	worker := accept()
	worker.WantHeaders(1, end) // the first that any worker has seen
	reply(worker, 1)
	wantReply(caller, 1)
}
