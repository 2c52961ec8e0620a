package scrape

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

func TestMain(m *testing.M) { testkit.VerifyMain(m) }

// serve has a handler answer as the page of a process.
func serve(t *testing.T, network string, handler http.HandlerFunc) Address {
	t.Helper()
	at := "127.0.0.1:0"
	if network == "unix" {
		at = t.TempDir() + "/page"
	}
	listener, err := net.Listen(network, at)
	testkit.Must(t, err)
	server := &http.Server{Handler: handler}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener)
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-served
	})
	return Address{network, listener.Addr().String(), "/metrics"}
}

func answer(page string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, page) }
}

// scrapeTwice asks one process twice.
func scrapeTwice(t *testing.T, at Address, limit time.Duration) (page, log string, counts map[string]uint64) {
	t.Helper()
	var told testkit.Buffer
	s := NewStore(Options{})
	scraper := NewScraper(s, nil, nil, slog.New(slog.NewTextHandler(&told, nil)))
	for range 2 {
		scraper.ask(t.Context(), scraper.source(Target{Worker: "w", PID: 7, At: at}), limit)
	}
	return samples(shown(t, s)), told.String(), scraper.Counts()
}

// What a worker answers in place of a page, or as one, costs nothing but its own page.
// The log names it once.
func TestPagesThatAreNone(t *testing.T) {
	forever := func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, "m 1\n"); err != nil {
				return
			}
			w.(http.Flusher).Flush()
		}
	}
	large := strings.Repeat("# a comment of some length that nobody reads\n", 1<<16)
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	for range 20 << 20 / len(large) {
		_, _ = io.WriteString(z, large)
	}
	_ = z.Close()
	bomb := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(packed.Bytes())
	}
	for _, c := range []struct {
		name    string
		handler http.HandlerFunc
		result  Result
		told    string
	}{
		{"never ends", forever, Late, "deadline"},
		{"trickles", func(w http.ResponseWriter, r *http.Request) {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}, Late, "deadline"},
		{"says nothing", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, Late, "deadline"},
		{"is packed and too long", bomb, Long, "longer than 16 MiB"},
		{"is not there", http.NotFound, Refused, "status 404"},
		{"is elsewhere", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
		}, Refused, "status 302"},
		{"is broken", answer("m 1\n<html>"), Broken, "line 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			limit := time.Minute
			if c.result == Late {
				limit = time.Second / 10
			}
			_, log, counts := scrapeTwice(t, serve(t, "tcp", c.handler), limit)
			testkit.Want(t, counts[c.result.String()] == 2, "results are %v", counts)
			testkit.Want(t, strings.Count(log, "\n") == 1 && strings.Contains(log, c.told) && strings.Contains(log, "worker=w pid=7"),
				"the log has %q", log)
		})
	}
}

// Workers without a page are many: the log says nothing of them.
func TestNobodyListens(t *testing.T) {
	for _, at := range []Address{{"tcp", "127.0.0.1:1", "/"}, {"unix", t.TempDir() + "/none", "/"}} {
		_, log, counts := scrapeTwice(t, at, 10*time.Second)
		testkit.Want(t, log == "" && counts["absent"] == 2, "results are %v, the log has %q", counts, log)
	}
}

func TestPageOverUnixSocketAndProxyOfTheEnvironment(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	page, _, _ := scrapeTwice(t, serve(t, "unix", answer("# TYPE g gauge\ng 1\n")), 10*time.Second)
	testkit.Want(t, page == "g 1\n", "page is %q", page)
}

// Processes come and go; one that is silent three times has no gauges.
func TestRun(t *testing.T) {
	var down atomic.Bool
	at := serve(t, "tcp", func(w http.ResponseWriter, _ *http.Request) {
		if down.Load() {
			http.Error(w, "no", http.StatusInternalServerError)
			return
		}
		_, _ = io.WriteString(w, "# TYPE g gauge\ng 1\n# TYPE c_total counter\nc_total 2\n")
	})
	s := NewStore(Options{})
	var targets atomic.Pointer[[]Target]
	targets.Store(&[]Target{{Worker: "w1", PID: 1, At: at}, {Worker: "w2", PID: 2, At: at}})
	scraper := NewScraper(s, func() []Target { return *targets.Load() }, func() time.Duration { return 5 * time.Millisecond }, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		scraper.Run(ctx)
	}()
	await := func(want string) {
		t.Helper()
		testkit.Eventually(t, 30*time.Second, want, func() bool { return samples(shown(t, s)) == want })
	}
	await("c_total 4\ng 2\n")
	targets.Store(&[]Target{{Worker: "w1", PID: 1, At: at}, {Worker: "w2", PID: 3, At: at}})
	await("c_total 6\ng 2\n")
	targets.Store(&[]Target{{Worker: "w2", PID: 3, At: at}})
	await("c_total 6\ng 1\n")
	down.Store(true)
	await("c_total 6\n")
	down.Store(false)
	await("c_total 6\ng 1\n")
	scraper.Last(t.Context(), Target{Worker: "w2", PID: 3, At: at})
	cancel()
	<-done
}

// The last page of a process is one that was made after the last calls: a page that is
// on its way is not it, nor is it left out because somebody else was quicker to ask.
func TestLastPageIsANewOne(t *testing.T) {
	var pages atomic.Int32
	asked, answer := make(chan struct{}), make(chan struct{})
	at := serve(t, "tcp", func(w http.ResponseWriter, _ *http.Request) {
		n := pages.Add(1)
		if n%3 == 1 {
			asked <- struct{}{}
			<-answer
		}
		_, _ = fmt.Fprintf(w, "# TYPE c_total counter\nc_total %d\n", n)
	})
	s := NewStore(Options{})
	scraper := NewScraper(s, nil, nil, slog.New(slog.DiscardHandler))
	target := Target{Worker: "w", PID: 1, At: at}
	for round := int32(0); round < 20 && !t.Failed(); round++ {
		var asking sync.WaitGroup
		asking.Go(func() { scraper.ask(t.Context(), scraper.source(target), time.Minute) })
		<-asked
		for range 2 {
			asking.Go(func() {
				scraper.Last(t.Context(), target)
				var got int32
				_, err := fmt.Sscanf(samples(shown(t, s)), "c_total %d", &got)
				testkit.Want(t, err == nil && got > 3*round+1, "the page has %d, %v, want more than %d", got, err, 3*round+1)
			})
		}
		<-time.After(time.Millisecond) // both wait
		answer <- struct{}{}
		asking.Wait()
	}
}
