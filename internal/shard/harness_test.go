package shard

import (
	"crypto/tls"
	"errors"
	"net"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/testkit"
)

const patience = 30 * time.Second

// transport makes the two ends of a connection: ours, and the scripted peer's.
type transport struct {
	name string
	pair func(t testing.TB) (ours, theirs net.Conn)
	raw  bool // driven as a raw socket
	half bool // the other end can be told that we have finished sending
}

// transports are what links are driven over; every test of the suite runs over
// all of them (R22).
var transports = []transport{
	{name: "tcp", pair: tcpPair, raw: runtime.GOOS == "linux", half: true},
	{name: "unix", pair: unixPair, raw: runtime.GOOS == "linux", half: true},
	{name: "tls", pair: tlsPair, raw: runtime.GOOS == "linux", half: true},
	{name: "pipe", pair: func(testing.TB) (a, b net.Conn) { return net.Pipe() }},
	{name: "wrapped", pair: wrappedPair, half: true},
}

func tcpPair(t testing.TB) (ours, theirs net.Conn) {
	t.Helper()
	theirs, ours = testkit.TCPPair(t)
	// Small buffers of the kernel's, so that little is needed to block.
	for _, err := range []error{theirs.(*net.TCPConn).SetReadBuffer(64 << 10), ours.(*net.TCPConn).SetWriteBuffer(64 << 10)} {
		testkit.Must(t, err)
	}
	return ours, theirs
}

func unixPair(t testing.TB) (ours, theirs net.Conn) {
	t.Helper()
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	testkit.Must(t, err)
	defer l.Close()
	theirs, err = net.Dial("unix", l.Addr().String())
	testkit.Must(t, err)
	ours, err = l.Accept()
	testkit.Must(t, err)
	return ours, theirs
}

// wrapped is a connection that does not tell its descriptor, as TLS does not.
type wrapped struct {
	net.Conn
	tcp *net.TCPConn
}

func (w wrapped) CloseWrite() error { return w.tcp.CloseWrite() }

func wrappedPair(t testing.TB) (ours, theirs net.Conn) {
	t.Helper()
	ours, theirs = tcpPair(t)
	return wrapped{ours, ours.(*net.TCPConn)}, theirs
}

func tlsPair(t testing.TB) (ours, theirs net.Conn) {
	t.Helper()
	below, above := tcpPair(t)
	cert, key, trust := testkit.Certificate(t, t.TempDir(), "shard.test", time.Now().Add(time.Hour))
	certificate, err := tls.LoadX509KeyPair(cert, key)
	testkit.Must(t, err)
	server := Secure(below, &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12})
	client := tls.Client(above, &tls.Config{RootCAs: trust, ServerName: "shard.test", MinVersion: tls.VersionTLS12})
	done := make(chan error, 1)
	go func() { done <- server.Handshake() }() // ends with the client's
	testkit.Must(t, errors.Join(client.Handshake(), <-done))
	return server, client
}

// everywhere runs a test over all transports.
func everywhere(t *testing.T, test func(h *host, tr transport)) {
	t.Helper()
	over(t, transports, test)
}

// over runs a test over some transports, and over none it leaves goroutines behind.
func over(t *testing.T, some []transport, test func(h *host, tr transport)) {
	t.Helper()
	for _, tr := range some {
		t.Run(tr.name, func(t *testing.T) {
			testkit.CheckLeaks(t)
			test(newHost(t), tr)
		})
	}
}

// host is a shard with a service for callers: a request to "/echo" is answered
// with its own bytes, one to "/sink" with nothing, and one to "/give/N" with N
// bytes as fast as they can be written; "/alone" ends all other links. asked is
// called with the path of each request, under the lock.
type host struct {
	*Shard
	t      testing.TB
	budget *h2.Budget
	watch  *h2.WatchList
	asked  func(path string)
	other  chan net.Conn // takes connections that do not speak HTTP/2; nil: they are answered

	mu     sync.Mutex // guards what tests look at
	ended  map[*Link]error
	events []string
}

func newHost(t testing.TB) *host {
	t.Helper()
	h := &host{
		t: t, budget: &h2.Budget{Total: 64 << 20},
		watch: h2.NewWatchList(":status", ":path"),
		ended: map[*Link]error{},
	}
	h.Shard = NewGroup(time.Now(), h.budget).New()
	t.Cleanup(func() {
		h.Stop()
		testkit.Eventually(t, patience, "buffers to go back", func() bool { return h.budget.Used() == 0 })
	})
	return h
}

func (h *host) config(server bool) *h2.Config {
	c := &h2.Config{
		Server: server, Watch: h.watch, MaxHeaderList: 16 << 10,
		Window: 64 << 10, MaxWindow: 1 << 20, ConnWindow: 1 << 20, OutputHigh: 64 << 10,
	}
	if server {
		c.MaxStreams = 100
	}
	return c
}

// do runs f under the lock.
func (h *host) do(f func()) {
	h.Lock()
	defer h.Unlock()
	f()
}

// serve attaches our end of a caller's connection.
func (h *host) serve(nc net.Conn) *Link {
	var l *Link
	h.do(func() {
		l = h.NewLink(h.config(true), service{h}, h)
		l.Attach(nc)
	})
	return l
}

// caller makes a connection to the service and a scripted caller on it.
func (h *host) caller(t testing.TB, tr transport) (*Link, *testkit.Peer) {
	t.Helper()
	ours, theirs := tr.pair(t)
	l := h.serve(ours)
	_, socket := l.driver.(*socket)
	testkit.Need(t, socket == tr.raw, "%s is driven by %T", tr.name, l.driver)
	p := testkit.NewCaller(t, theirs)
	p.Greet()
	return l, p
}

// LinkClosed implements Watcher.
func (h *host) LinkClosed(l *Link, reason error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, twice := h.ended[l]
	testkit.Want(h.t, !twice, "a link has ended twice")
	h.ended[l] = reason
}

// awaitEnd waits until the link has ended and returns why.
func (h *host) awaitEnd(l *Link) (reason error) {
	h.t.Helper()
	testkit.Eventually(h.t, patience, "the link to end", func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		var over bool
		reason, over = h.ended[l]
		return over
	})
	return reason
}

func (h *host) note(event string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, event)
}

func (h *host) noted(event string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for _, e := range h.events {
		if e == event {
			n++
		}
	}
	return n
}

// service implements h2.Handler in the server role.
type service struct{ *host }

// serving is the service's side of one call.
type serving struct {
	waiting []byte
	ended   bool
	sink    bool
	give    int
}

func (s service) Accept(*h2.Conn, *h2.Block) *h2.Stream { return &h2.Stream{Owner: &serving{}} }

func (s service) Headers(st *h2.Stream, b *h2.Block, end bool) {
	call := st.Owner.(*serving)
	path, _ := b.Watched(1)
	call.sink = string(path.Value) == "/sink"
	if rest, found := strings.CutPrefix(string(path.Value), "/give/"); found {
		call.give, _ = strconv.Atoi(rest)
	}
	if string(path.Value) == "/alone" {
		s.closeOthers(st.Conn())
	}
	if s.asked != nil {
		s.asked(string(path.Value))
	}
	st.Conn().WriteHeaders(st, false, h2.AppendField(nil, ":status", "200"))
	s.Data(st, nil, end)
}

// errAlone is the reason of links that a call of "/alone" has ended.
var errAlone = errors.New("another wants to be alone")

func (s service) closeOthers(c *h2.Conn) {
	for l := range s.links {
		if l.Conn != c {
			l.Close(errAlone)
		}
	}
}

func (s service) TooLarge(*h2.Stream, bool) {}

func (s service) Data(st *h2.Stream, p []byte, end bool) {
	call := st.Owner.(*serving)
	call.ended = end
	if call.sink {
		st.Conn().Credit(st, len(p))
	} else {
		call.waiting = append(call.waiting, p...)
	}
	s.Writable(st)
}

// chunk is what a "/give" call writes again and again.
var chunk = make([]byte, 32<<10)

func (s service) Writable(st *h2.Stream) {
	call, conn := st.Owner.(*serving), st.Conn()
	for call.give > 0 || len(call.waiting) > 0 {
		p := call.waiting
		if call.give > 0 {
			p = chunk[:min(len(chunk), call.give)]
		}
		n := min(len(p), conn.Writable(st))
		if n == 0 {
			conn.Want(st)
			return
		}
		conn.WriteData(st, p[:n], false)
		if call.give > 0 {
			call.give -= n
		} else {
			call.waiting = call.waiting[n:]
			conn.Credit(st, n)
		}
	}
	if call.ended {
		conn.WriteHeaders(st, true, h2.AppendField(nil, "grpc-status", "0"))
	}
}

func (s service) Reset(*h2.Stream, h2.ErrCode, bool) { s.note("reset") }

func (s service) Lost(_ *h2.Stream, sent bool) { s.note("lost sent=" + strconv.FormatBool(sent)) }

func (s service) GoAway(*h2.Conn, uint32, h2.ErrCode) { s.note("goaway") }

func (s service) Pong(*h2.Conn, [8]byte) {}

// request is what a scripted caller sends to begin a call.
func request(p *testkit.Peer, stream uint32, end testkit.EndStream, path string) {
	p.WriteHeaders(stream, end, ":method", "POST", ":scheme", "http", ":path", path, ":authority", "a")
}

// wantEnd takes the last block of an answer.
func wantEnd(p *testkit.Peer, stream uint32) {
	p.WantFields(stream, testkit.End, "grpc-status", "0")
}

// No test leaves a goroutine or a listener behind.
func TestMain(m *testing.M) { testkit.VerifyMain(m) }
