package web_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/callers"
	"github.com/cabrank/cabrank/internal/door"
	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/relay"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/internal/web"
)

func TestMain(m *testing.M) { testkit.VerifyMain(m) }

// soon bounds waits for what should happen at once.
const soon = 30 * time.Second

// site is a relay on loopback that has a handler serve what is no call.
type site struct {
	*relay.Relay
	url string
	log lines
}

// newSite starts one; it ends with the test, and nothing may be left of it.
func newSite(t testing.TB, h http.Handler, change ...func(*relay.Options)) *site {
	t.Helper()
	s := &site{}
	server := &web.Server{Handler: h, Log: slog.New(slog.NewTextHandler(&s.log, nil))}
	o := relay.Options{
		Shards: 2, QueueLength: 100, QueueTimeout: soon, MinReady: 1, OnCancel: rank.Free,
		BufferTotal: 64 << 20, HeaderList: 16 << 10, MaxStreams: 100, MaxHops: 8, Keys: callers.Keys{By: callers.ByPeer},
		Limits: relay.Limits{Connections: 100, Handshake: soon, Window: 64 << 10, MaxWindow: 1 << 20, Buffer: 16 << 20},
		Log:    slog.New(slog.DiscardHandler), Random: func() float64 { return 0.5 },
		Other: func(relay.Head) func(*relay.Exchange) {
			return func(x *relay.Exchange) { server.Serve(x) }
		},
	}
	for _, f := range change {
		f(&o)
	}
	s.Relay = relay.New(o)
	ln := testkit.Listen(t)
	s.url = "http://" + ln.Addr().String()
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }() // ended by Close
	t.Cleanup(func() {
		s.Close()
		testkit.Is(t, <-served, door.ErrClosed, "Serve")
		testkit.Eventually(t, soon, "the last buffer to come back", func() bool { return s.Stats().Buffered == 0 })
	})
	return s
}

// lines keeps what is logged.
type lines struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

// newClient returns a client that speaks HTTP/2 without TLS, on one connection.
func newClient(t testing.TB) *http.Client {
	t.Helper()
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: protocols, DisableCompression: true, ExpectContinueTimeout: soon}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// do sends a request and reads the whole answer.
func do(t testing.TB, c *http.Client, method, url string, body io.Reader, header ...string) (*http.Response, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, url, body)
	testkit.Must(t, err)
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	answer, err := c.Do(r)
	testkit.Need(t, err == nil, "%s %s: %v", method, url, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	testkit.Need(t, err == nil, "%s %s: %v after %d bytes", method, url, err, len(text))
	return answer, string(text)
}
