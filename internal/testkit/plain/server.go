// Package plain is an ordinary HTTP/2 server built on the engine, for suites
// that judge an endpoint by requests which are not gRPC.
//
// Start from Start. Any request gets 200 and a short body when it has ended;
// what it carries is read, with flow control, and forgotten. It is a package of
// its own because the tests of the engine import testkit, which must not import
// the engine in turn.
package plain

import (
	"errors"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/shard"
)

// Body is what every request is answered with, but for HEAD.
const Body = "an ordinary answer of an ordinary server\n"

// fieldMethod is the place of ":method" in the watch list.
const fieldMethod = 0

// Server serves plaintext HTTP/2 with prior knowledge on a loopback port.
//
// Life: made by Start, ended with its test.
type Server struct {
	// Addr is where it listens, HOST:PORT.
	Addr string

	shard *shard.Shard
	conf  *h2.Config
	ln    net.Listener
	done  sync.WaitGroup
}

// Start returns a server that listens on a free port; it ends with the test.
func Start(t testing.TB) *Server {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{
		Addr: ln.Addr().String(), ln: ln,
		shard: shard.NewGroup(time.Now(), &h2.Budget{Total: 64 << 20}).New(),
		conf: &h2.Config{
			Server: true, Watch: h2.NewWatchList(":method"),
			MaxStreams: 100, MaxHeaderList: 16 << 10, OutputHigh: 64 << 10,
			Window: 64 << 10, MaxWindow: 1 << 20, ConnWindow: 1 << 20,
		},
	}
	s.done.Go(func() { s.accept(t) })
	t.Cleanup(s.stop)
	return s
}

func (s *Server) stop() {
	s.ln.Close()
	s.done.Wait()
	s.shard.Stop()
}

func (s *Server) accept(t testing.TB) {
	t.Helper()
	for {
		nc, err := s.ln.Accept()
		if err != nil {
			if !errors.Is(err, net.ErrClosed) {
				t.Errorf("plain: %v", err)
			}
			return
		}
		s.shard.Lock()
		s.shard.NewLink(s.conf, handler{}, handler{}).Attach(nc)
		s.shard.Unlock()
	}
}

// exchange is one request and its answer.
type exchange struct {
	stream h2.Stream
	head   bool   // its method is HEAD
	left   string // of the body
}

// handler implements h2.Handler and shard.Watcher.
type handler struct{}

func of(s *h2.Stream) *exchange { return s.Owner.(*exchange) }

// Accept implements h2.Handler.
func (handler) Accept(*h2.Conn, *h2.Block) *h2.Stream {
	x := &exchange{left: Body}
	x.stream.Owner = x
	return &x.stream
}

// Headers implements h2.Handler: a request, or its trailers.
func (handler) Headers(s *h2.Stream, b *h2.Block, end bool) {
	if method, found := b.Watched(fieldMethod); found {
		of(s).head = string(method.Value) == "HEAD"
	}
	if end {
		of(s).answer()
	}
}

// Data implements h2.Handler.
func (handler) Data(s *h2.Stream, p []byte, end bool) {
	s.Conn().Credit(s, len(p))
	if end {
		of(s).answer()
	}
}

// TooLarge implements h2.Handler.
func (handler) TooLarge(s *h2.Stream, _ bool) {
	conn := s.Conn()
	conn.WriteHeaders(s, true, h2.AppendField(nil, ":status", "431"))
	conn.Reset(s, h2.NoError)
}

// answer begins the answer; the request has ended.
func (x *exchange) answer() {
	head := h2.AppendField(nil, ":status", "200")
	head = h2.AppendField(head, "content-type", "text/plain")
	head = h2.AppendField(head, "content-length", strconv.Itoa(len(Body)))
	x.stream.Conn().WriteHeaders(&x.stream, x.head, head)
	if !x.head {
		x.write()
	}
}

// write sends of the body what the windows take.
func (x *exchange) write() {
	conn := x.stream.Conn()
	for {
		n := min(len(x.left), conn.Writable(&x.stream))
		if n == 0 {
			conn.Want(&x.stream)
			return
		}
		end := n == len(x.left)
		conn.WriteData(&x.stream, []byte(x.left[:n]), end)
		x.left = x.left[n:]
		if end {
			return
		}
	}
}

// Writable implements h2.Handler.
func (handler) Writable(s *h2.Stream) { of(s).write() }

// Reset implements h2.Handler.
func (handler) Reset(*h2.Stream, h2.ErrCode, bool) {}

// Lost implements h2.Handler.
func (handler) Lost(*h2.Stream, bool) {}

// GoAway implements h2.Handler.
func (handler) GoAway(*h2.Conn, uint32, h2.ErrCode) {}

// Pong implements h2.Handler.
func (handler) Pong(*h2.Conn, [8]byte) {}

// LinkClosed implements shard.Watcher.
func (handler) LinkClosed(*shard.Link, error) {}
