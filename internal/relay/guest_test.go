package relay

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

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
				testkit.Must(t, err)
				g.serve(ln)
			}
			g.Reconfigure(options(nil)) // which keeps the server of HTTP/1
			good := g.caller()
			askHealth(good, 1, checkPath, "")
			good.WantHeaders(1, noEnd)
			ask := func(text string, piece, status int) (body string) {
				t.Helper()
				nc, err := net.Dial(network, address)
				testkit.Must(t, err)
				c := newHTTP1Caller(t, nc)
				for ; text != ""; text = text[min(piece, len(text)):] {
					_, err = io.WriteString(c, text[:min(piece, len(text))])
					testkit.Need(t, err == nil, "%v", err)
				}
				answer, body := c.want(status)
				testkit.Want(t, answer.Close, "the caller was not told that the connection ends")
				c.wantEnd()
				return body
			}
			for _, piece := range []int{1, 5, len(getPage)} {
				testkit.Says(t, ask(getPage, piece, http.StatusOK), "grpcurl -plaintext greeter.test:50051 list")
			}
			if body := ask("POST /a.B/C HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc", 3, http.StatusHTTPVersionNotSupported); !strings.Contains(body, "this port speaks HTTP/2") {
				t.Errorf("body %q", body)
			}
			testkit.Eventually(t, soon, "their places to be free", func() bool { return g.sources.Open.Load() == 1 && g.numbers()["guests"] == 0 })
			testkit.Equal(t, g.disconnectedFor("not_http2"), 1, "connections are counted as wrong")
		})
	}
}
