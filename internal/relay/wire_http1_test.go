package relay

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/internal/web"
)

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

// want takes one answer, and returns it with its body.
func (c *http1Caller) want(status int) (answer *http.Response, body string) {
	c.t.Helper()
	answer, err := http.ReadResponse(c.r, nil)
	testkit.Must(c.t, err)
	all, err := io.ReadAll(answer.Body)
	testkit.Need(c.t, err == nil && answer.StatusCode == status, "status %d, want %d; %v after %q", answer.StatusCode, status, err, all)
	return answer, string(all)
}

// wantEnd takes the end of the connection, and nothing in front of it.
func (c *http1Caller) wantEnd() {
	c.t.Helper()
	rest, err := io.ReadAll(c.r)
	testkit.Want(c.t, len(rest) == 0 && !errors.Is(err, os.ErrDeadlineExceeded), "%q before the end, %v", rest, err)
}

// serveHTTP1 serves callers over HTTP/1 as cmd/cabrank does. /slow is answered at "release",
// whoever asks for /taken has its connection taken over until then, /who tells its certificate, and
// /call makes a call and tells its status.
func (w *wire) serveHTTP1() func(*Guest) {
	routes := map[string]http.Handler{
		"/slow": http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
			w.released()
			_, _ = io.WriteString(rw, "done")
		}),
		"/who": http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(rw, web.Conn(r).(*Guest).Certificate())
		}),
		"/taken": http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(rw).Hijack()
			if err != nil {
				w.Errorf("%v", err)
				return
			}
			w.released()
			_, _ = io.WriteString(conn, "bye")
			_ = conn.Close()
		}),
	}
	door := func(r *http.Request) http.Handler {
		if r.URL.Path == "/call" {
			return http.HandlerFunc(callByDoor)
		}
		return nil
	}
	server := web.NewHTTP1(web.Limits{Head: handshake, HeadBytes: 16 << 10}, routes, door, slog.New(slog.DiscardHandler))
	w.Cleanup(server.Close)
	return func(g *Guest) {
		w.guests = append(w.guests, g)
		server.ServeConn(g)
	}
}

// released waits for "release", or for the end of a test that has failed.
func (w *wire) released() {
	select {
	case <-w.release:
	case <-w.Context().Done():
	}
}

func callByDoor(w http.ResponseWriter, r *http.Request) {
	var c LocalCall
	err := web.Conn(r).(*Guest).Local().Open(&c, LocalRequest{Head: headOf(request(hello)...), End: true, Door: "web"})
	web.Begun(r.Context())
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer c.Close()
	defer context.AfterFunc(r.Context(), c.Cancel)()
	_, _ = c.Header() // the status says it, too
	code, text := c.Status()
	w.WriteHeader(http.StatusOK)
	fmt.Fprint(w, code, text)
}

// wantNoMoreCalls wants all guests to be gone.
func (w *wire) wantNoMoreCalls() {
	for _, g := range w.guests {
		if err := g.Local().Open(new(LocalCall), LocalRequest{Head: headOf(request(hello)...), End: true}); !errors.Is(err, ErrClosed) {
			w.Errorf("a call behind the end: %v", err)
		}
	}
}

// http1 does what "h > get /" or "h < 200 "text"; end" says. A | in raw bytes is the end of a
// line; an answer that is the last one says that its connection ends.
func (w *wire) http1(c *http1Caller, write bool, verb string, args []string) {
	if write {
		text := strings.ToUpper(verb) + " " + args[0] + " HTTP/1.1|Host: x|Content-Length: 0||"
		if verb == "raw" {
			text = string(w.bytes(args[0]))
		}
		go func() { _, _ = io.WriteString(c, strings.ReplaceAll(text, "|", "\r\n")) }() // ends when it is read, or closed
		synctest.Wait()
		return
	}
	_ = c.SetReadDeadline(time.Now().Add(time.Minute)) // a connection in memory has one
	switch verb {
	case "end":
		c.wantEnd()
	case "bytes":
		want := w.unquote(args[0])
		got := make([]byte, len(want))
		if _, err := io.ReadFull(c.r, got); err != nil || string(got) != want {
			w.Errorf("got %q, %v", got, err)
		}
	default:
		answer, body := c.want(int(w.number(verb)))
		if len(args) > 0 && !strings.Contains(body, w.unquote(args[0])) {
			w.Errorf("got %q", body)
		}
		if len(args) > 1 && !answer.Close {
			w.Errorf("it is not told to be the last one")
		}
	}
}
