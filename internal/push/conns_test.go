package push

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/cabrank/cabrank/internal/door"
	"github.com/cabrank/cabrank/internal/testkit"
)

const (
	end   testkit.EndStream = true
	noEnd testkit.EndStream = false
)

// remembered is a connection in memory of somebody with an address.
type remembered struct {
	net.Conn

	address string
}

func (r remembered) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(r.address), Port: 1} }

// memory is a server with a token, reached in memory.
type memory struct {
	t      *testing.T
	annex  *door.Annex
	server *Server
}

func newMemory(t *testing.T) *memory {
	t.Helper()
	m := &memory{t: t, annex: door.NewAnnex()}
	m.server = Serve(m.annex, new(noted), token, slog.New(slog.DiscardHandler))
	t.Cleanup(func() { _ = m.server.Shutdown(context.Background()) })
	return m
}

// from connects somebody.
func (m *memory) from(address string) net.Conn {
	ours, theirs := net.Pipe()
	m.annex.ServeConn(remembered{ours, address})
	m.t.Cleanup(func() { theirs.Close() })
	return theirs
}

// post publishes by HTTP, and returns the first line of the answer.
func (m *memory) post(nc net.Conn, token string) (string, error) {
	m.t.Helper()
	const body = `{"channel":"c"}`
	ask := "POST /v1/publish HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s"
	if _, err := fmt.Fprintf(nc, ask, token, len(body), body); err != nil {
		return "", err
	}
	answer := bufio.NewReader(nc)
	first, err := answer.ReadString('\n')
	for line := first; err == nil && line != "\r\n"; {
		line, err = answer.ReadString('\n')
	}
	if err == nil {
		_, err = answer.Discard(answer.Buffered())
	}
	return strings.TrimSpace(first), err
}

// greeted is a caller that has sent its preface.
func (m *memory) greeted(address string) *testkit.Peer {
	p := testkit.NewCaller(m.t, m.from(address))
	p.Greet()
	p.Skip(testkit.WindowUpdate, testkit.Ping)
	return p
}

func ask(token string) []string {
	return []string{
		":method", "POST", ":scheme", "http", ":path", "/cabrank.push.v1.Push/Publish", ":authority", "h",
		"content-type", "application/grpc", "te", "trailers", "authorization", "Bearer " + token,
	}
}

// Strangers who fill the server give way to the application, the oldest first: such that
// say nothing, and such that sent a preface.
func TestStrangersGiveWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(t)
		silent := m.from("192.0.2.1")
		pass(time.Millisecond)
		preface := m.greeted("192.0.2.1")
		pass(time.Millisecond)
		app := m.from("192.0.2.9")
		if got, err := m.post(app, token); err != nil || got != "HTTP/1.1 200 OK" {
			t.Fatalf("%q, %v", got, err)
		}
		for range mostConnections - 3 {
			m.from("192.0.2.1")
		}
		m.from("192.0.2.2") // a stranger as well, of an address with less
		_, err := silent.Read(make([]byte, 1))
		testkit.Want(t, errors.Is(err, io.EOF), "the oldest stays: %v", err)
		for range 3 {
			if got, err := m.post(m.from("192.0.2.8"), token); err != nil || got != "HTTP/1.1 200 OK" {
				t.Fatalf("%q, %v", got, err)
			}
		}
		preface.WantClosed()
		if got, err := m.post(app, token); err != nil || got != "HTTP/1.1 200 OK" {
			t.Errorf("who has the token lost its connection: %q, %v", got, err)
		}
		testkit.Equal(t, m.server.conns.count(), mostConnections, "connections")
	})
}

// Without a stranger the one that has been without a request for longest gives way, if
// that is long.
func TestIdleConnectionsGiveWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(t)
		for range mostConnections {
			if got, err := m.post(m.from("192.0.2.1"), token); err != nil || got != "HTTP/1.1 200 OK" {
				t.Fatalf("%q, %v", got, err)
			}
		}
		_, err := m.post(m.from("192.0.2.2"), token)
		testkit.Want(t, err != nil, "nobody was idle for long")
		pass(patience)
		if got, err := m.post(m.from("192.0.2.2"), token); err != nil || got != "HTTP/1.1 200 OK" {
			t.Errorf("%q, %v", got, err)
		}
	})
}

// A connection that does not bring the token ends: at once over HTTP, over gRPC after a
// while or after some tries.
func TestStrangersEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(t)
		plain := m.from("192.0.2.1")
		got, err := m.post(plain, "wrong")
		testkit.Want(t, err == nil && got == "HTTP/1.1 401 Unauthorized", "%q, %v", got, err)
		_, err = plain.Read(make([]byte, 1))
		testkit.Want(t, errors.Is(err, io.EOF), "refused, and still open: %v", err)
		began := time.Now()
		m.greeted("192.0.2.1").WantClosed()
		testkit.Equal(t, time.Since(began), strangerTime, "a preface alone stayed")
		began = time.Now()
		trying := m.greeted("192.0.2.1")
		for n := range uint32(17) {
			trying.WriteHeaders(1+2*n, noEnd, ask("wrong")...)
		}
		trying.Skip(testkit.Headers, testkit.RST)
		trying.WantClosed()
		testkit.Equal(t, time.Since(began), 0, "seventeen tries took")
	})
}

// A call without the token is answered before its message comes, and one with it that
// does not send its message ends.
func TestNoMessageIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(t)
		p := m.greeted("192.0.2.1")
		p.WriteHeaders(1, noEnd, ask("wrong")...)
		wantStatus(t, p, 1, "16")
		p.WantRST(1, http2.ErrCodeNo)
		p.WriteHeaders(3, noEnd, ask(token)...)
		p.WriteData(3, noEnd, []byte{0, 0, 1, 0, 0, 1})
		began := time.Now()
		wantStatus(t, p, 3, "4")
		testkit.Equal(t, time.Since(began), 2*requestTime, "half a message was waited for")
	})
}

func wantStatus(t *testing.T, p *testkit.Peer, stream uint32, want string) {
	t.Helper()
	for _, f := range p.WantHeaders(stream, end) {
		testkit.Want(t, f.Name != "grpc-status" || f.Value == want, "stream %d ended with %s, want %s", stream, f.Value, want)
	}
}

func (s *conns) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.all)
}

// pass lets time of the bubble go by.
func pass(d time.Duration) { <-time.After(d) }
