package web_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/cabrank/cabrank/internal/relay"
	"github.com/cabrank/cabrank/internal/testkit"
)

// long is ten million bytes of a body.
func long() []byte {
	p := make([]byte, 10<<20)
	for i := range p {
		p[i] = byte(i ^ i>>8 ^ i>>16)
	}
	return p
}

// echo answers with the body, as it comes.
func echo(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(w, r.Body)
}

// Ten million bytes go both ways at a time, with the client of x/net too.
func TestLongBodies(t *testing.T) {
	s := newSite(t, http.HandlerFunc(echo))
	want := long()
	xnet := &http.Client{Transport: &http2.Transport{ //nolint:staticcheck // deprecated, and used by many callers
		AllowHTTP: true, //nolint:staticcheck // as above
		DialTLSContext: func(ctx context.Context, network, addr string, _ *tls.Config) (net.Conn, error) { //nolint:staticcheck // as above
			return new(net.Dialer).DialContext(ctx, network, addr)
		},
	}}
	defer xnet.CloseIdleConnections()
	for name, client := range map[string]*http.Client{"net/http": newClient(t), "x/net": xnet} {
		t.Run(name, func(t *testing.T) {
			var all sync.WaitGroup
			for range 3 {
				all.Go(func() {
					answer, got := do(t, client, "POST", s.url, bytes.NewReader(want))
					testkit.Want(t, answer.StatusCode == http.StatusOK && got == string(want),
						"status %d, %d bytes, the same: %v", answer.StatusCode, len(got), got == string(want))
				})
			}
			all.Wait()
		})
	}
}

// A handler that does not read takes a window of its caller's body and no more; the
// caller is told that the rest is not wanted.
func TestHandlerThatDoesNotRead(t *testing.T) {
	s := newSite(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/wait" {
			<-r.Context().Done()
			return
		}
		_, _ = io.WriteString(w, "enough")
	}))
	client := newClient(t)
	answer, got := do(t, client, "POST", s.url, bytes.NewReader(long()))
	testkit.Want(t, answer.StatusCode == http.StatusOK && got == "enough", "status %d, %q", answer.StatusCode, got)
	ctx, cancel := context.WithCancel(t.Context())
	sent := &counting{Reader: bytes.NewReader(long())}
	done := make(chan error, 1)
	go func() {
		r, _ := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/wait", sent)
		_, err := client.Do(r)
		done <- err
	}()
	testkit.Eventually(t, soon, "a window of the body", func() bool { return s.Stats().Buffered > 64<<10 })
	if used := s.Stats().Buffered; used > 256<<10 {
		t.Errorf("%d bytes are held of a body that nobody reads", used)
	}
	cancel()
	err := <-done
	testkit.Want(t, errors.Is(err, context.Canceled), "got %v", err)
	if n := sent.read(); n > 1<<20 {
		t.Errorf("%d bytes of the body were taken", n)
	}
}

// counting counts what is read.
type counting struct {
	io.Reader
	mu sync.Mutex
	n  int
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.mu.Lock()
	c.n += n
	c.mu.Unlock()
	return n, err
}

func (c *counting) read() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

// A handler that never ends by itself ends when its caller leaves, and meanwhile holds
// up nobody on its connection.
func TestHandlerThatNeverEnds(t *testing.T) {
	over := make(chan error, 1)
	s := newSite(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/endless" {
			echo(w, r)
			return
		}
		piece := make([]byte, 10<<10)
		for {
			if _, err := w.Write(piece); err != nil {
				over <- err
				return
			}
		}
	}))
	client := newClient(t)
	ctx, cancel := context.WithCancel(t.Context())
	r, _ := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/endless", nil)
	answer, err := client.Do(r)
	testkit.Must(t, err)
	defer answer.Body.Close()
	_, err = io.CopyN(io.Discard, answer.Body, 100<<10)
	testkit.Must(t, err)
	_, got := do(t, client, "POST", s.url, strings.NewReader("beside it"))
	testkit.Want(t, got == "beside it", "got %q", got)
	cancel()
	err = testkit.Take(t, over, soon, "the handler goes on for a caller that has left")
	testkit.Want(t, errors.Is(err, relay.ErrGone), "the handler got %v", err)
}

// A panic resets its own stream, and is told once; http.ErrAbortHandler is not.
func TestHandlerThatPanics(t *testing.T) {
	s := newSite(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/late" {
			_, _ = io.WriteString(w, "the beginning")
			_ = http.NewResponseController(w).Flush()
		}
		if r.URL.Path == "/silent" {
			panic(http.ErrAbortHandler)
		}
		if r.URL.Path != "/" {
			panic("a test's panic")
		}
		echo(w, r)
	}))
	client := newClient(t)
	for _, path := range []string{"/early", "/late", "/silent"} {
		answer, err := client.Get(s.url + path)
		if err == nil {
			_, err = io.ReadAll(answer.Body)
			answer.Body.Close()
		}
		testkit.Want(t, err != nil && strings.Contains(err.Error(), "INTERNAL_ERROR"),
			"%s: got %v, want a reset with INTERNAL_ERROR", path, err)
	}
	_, got := do(t, client, "POST", s.url, strings.NewReader("goes on"))
	testkit.Want(t, got == "goes on", "got %q", got)
	testkit.Eventually(t, soon, "two lines in the log", func() bool { return strings.Count(s.log.String(), "\n") >= 2 })
	if said := s.log.String(); strings.Count(said, "a test's panic") != 2 || strings.Count(said, "\n") != 2 ||
		!strings.Contains(said, "TestHandlerThatPanics") || !strings.Contains(said, "caller=127.0.0.1") {
		t.Errorf("the log says:\n%s", said)
	}
}

// The end of a request is the end of its handler's context.
func TestCallerThatLeaves(t *testing.T) {
	began, over := make(chan struct{}), make(chan struct{})
	s := newSite(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(began)
		<-r.Context().Done()
		close(over)
	}))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r, _ := http.NewRequestWithContext(ctx, http.MethodGet, s.url, nil)
		_, _ = newClient(t).Do(r)
	}()
	<-began
	cancel()
	<-over
	<-done
}

// An answer is as long as its head says, or it is reset (RFC 9113 8.1.1). No more is
// taken of the handler.
func TestContentLength(t *testing.T) {
	s := newSite(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "4")
		if r.URL.Path == "/short" {
			_, _ = io.WriteString(w, "thr")
			return
		}
		_, _ = io.WriteString(w, "four")
		_, err := io.WriteString(w, "five")
		testkit.Want(t, errors.Is(err, http.ErrContentLength), "got %v", err)
	}))
	client := newClient(t)
	_, got := do(t, client, "GET", s.url, nil)
	testkit.Want(t, got == "four", "got %q", got)
	answer, err := client.Get(s.url + "/short")
	if err == nil {
		_, err = io.ReadAll(answer.Body)
		answer.Body.Close()
	}
	testkit.Want(t, err != nil && strings.Contains(err.Error(), "INTERNAL_ERROR"), "a body that is too short: %v", err)
}

// A drain waits for a handler.
func TestDrainWaitsForHandler(t *testing.T) {
	began, goOn := make(chan struct{}), make(chan struct{})
	s := newSite(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(began)
		<-goOn
		_, _ = io.WriteString(w, "done")
	}))
	client := newClient(t)
	got := make(chan string, 1)
	go func() { _, body := do(t, client, "GET", s.url, nil); got <- body }()
	<-began
	drained := make(chan int, 1)
	go func() { drained <- s.Drain(soon, nil) }()
	testkit.Eventually(t, soon, "the door to close", func() bool {
		nc, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		if err == nil {
			nc.Close()
		}
		return err != nil
	})
	testkit.Want(t, len(drained) == 0, "the drain was over before the handler")
	close(goOn)
	testkit.Equal(t, <-drained, 0, "cut")
	testkit.Equal(t, <-got, "done", "the caller")
}

// Calls and handlers' streams are mixed on one connection.
func TestCallsBetween(t *testing.T) {
	s := newSite(t, http.HandlerFunc(echo))
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	worker := &http.Server{Protocols: protocols, ReadHeaderTimeout: soon, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set("Trailer", "Grpc-Status")
		_, _ = io.Copy(w, r.Body)
		w.Header().Set("Grpc-Status", "0")
	})}
	ln := testkit.Listen(t)
	done := make(chan struct{})
	go func() { defer close(done); _ = worker.Serve(ln) }() // ended by Close
	defer func() { worker.Close(); <-done }()
	e := s.AddEndpoint("w1", 4, true)
	s.Up(e, "tcp", ln.Addr().String())
	client := newClient(t)
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			message := append([]byte{0, 0, 1, 0, 0}, bytes.Repeat([]byte{byte(i)}, 65536)...)
			kind, want := "application/octet-stream", ""
			if i%2 == 0 {
				kind, want = "application/grpc", "0"
			}
			answer, got := do(t, client, "POST", s.url+"/test.Echo/Echo", bytes.NewReader(message), "Content-Type", kind)
			testkit.Want(t, got == string(message) && answer.Trailer.Get("Grpc-Status") == want,
				"%s: %d bytes, trailers %v", kind, len(got), answer.Trailer)
		})
	}
	all.Wait()
	testkit.Want(t, len(s.Stats().Methods) != 0, "no call was recorded")
}

// Whatever callers and handlers do in which order: what is answered is what was sent,
// and nothing is left (newSite looks).
func TestRandomExchanges(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	s := newSite(t, http.HandlerFunc(random), func(o *relay.Options) { o.BufferTotal, o.Limits.Buffer = 4<<20, 1<<20 })
	var all sync.WaitGroup
	for i := range uint64(8) {
		client := newClient(t)
		for j := range uint64(4) {
			all.Go(func() {
				dice := rand.New(rand.NewPCG(seed, i<<8|j))
				for range 25 {
					randomRequest(t, s, client, dice)
				}
			})
		}
	}
	all.Wait()
}

// random is a handler that does what its path says.
func random(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/echo":
		echo(w, r)
	case "/duplex":
		piece := make([]byte, 300)
		for {
			n, err := r.Body.Read(piece)
			_, _ = w.Write(piece[:n])
			if n > 0 && piece[0]%7 == 0 {
				_ = http.NewResponseController(w).Flush()
			}
			if err != nil {
				return
			}
		}
	case "/deaf":
		_, _ = io.WriteString(w, "deaf")
	case "/panic":
		panic(http.ErrAbortHandler)
	default:
		<-r.Context().Done()
	}
}

func randomRequest(t *testing.T, s *site, client *http.Client, dice *rand.Rand) {
	t.Helper()
	path := []string{"/echo", "/echo", "/duplex", "/deaf", "/panic", "/wait"}[dice.IntN(6)]
	sent := make([]byte, dice.IntN(1<<dice.IntN(18)))
	for i := range sent {
		sent[i] = byte(dice.Uint32())
	}
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	if path == "/wait" || dice.IntN(4) == 0 {
		ctx, cancel = context.WithTimeout(t.Context(), time.Duration(dice.IntN(5000))*time.Microsecond)
	}
	defer cancel()
	r, _ := http.NewRequestWithContext(ctx, http.MethodPost, s.url+path, io.NopCloser(bytes.NewReader(sent))) // of unknown length
	answer, err := client.Do(r)
	if err != nil {
		return
	}
	defer answer.Body.Close()
	got, err := io.ReadAll(answer.Body)
	switch {
	case err != nil:
	case answer.StatusCode == http.StatusServiceUnavailable: // as much as its connection may have
	case answer.StatusCode != http.StatusOK:
		t.Errorf("%s: %s", path, answer.Status)
	case path == "/deaf" && string(got) != "deaf", path != "/deaf" && !slices.Equal(got, sent):
		t.Errorf("%s: %d bytes became %d others", path, len(sent), len(got))
	}
}
