package trace

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/internal/testkit/collector"
)

// peer is a collector without a network, for tests under virtual time. answer is called for
// each request, counted from 1.
type peer struct {
	answer func(r *http.Request, n int) (*http.Response, error)

	mu   sync.Mutex
	at   []time.Duration // when requests came
	size []int           // their spans
}

func (p *peer) RoundTrip(r *http.Request) (*http.Response, error) {
	spans, err := collector.Read(r)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	answer := p.answer
	p.at, p.size = append(p.at, time.Since(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC))), append(p.size, len(spans))
	n := len(p.at)
	p.mu.Unlock()
	if answer == nil {
		return status(200)(r, n)
	}
	return answer(r, n)
}

func status(code int, header ...string) func(*http.Request, int) (*http.Response, error) {
	return func(*http.Request, int) (*http.Response, error) {
		h := http.Header{}
		for i := 0; i < len(header); i += 2 {
			h.Set(header[i], header[i+1])
		}
		return &http.Response{StatusCode: code, Header: h, Body: http.NoBody}, nil
	}
}

// wants fails unless there were requests of so many spans.
func (p *peer) wants(t *testing.T, spans ...int) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	testkit.Need(t, slices.Equal(p.size, spans), "requests of %d spans, want %d", p.size, spans)
}

// recover has it answer well.
func (p *peer) recover() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer = nil
}

// times returns when requests came.
func (p *peer) times() []time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.at)
}

// then answers n requests in one way, and those behind them well.
func then(first func(*http.Request, int) (*http.Response, error), n int) func(*http.Request, int) (*http.Response, error) {
	return func(r *http.Request, number int) (*http.Response, error) {
		if number <= n {
			return first(r, number)
		}
		return status(200)(r, number)
	}
}

func breaks(err error) func(*http.Request, int) (*http.Response, error) {
	return func(*http.Request, int) (*http.Response, error) { return nil, err }
}

// elapse waits in virtual time, until all is quiet.
func elapse(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// While a collector hangs nobody waits: 4,096 spans do, and the others are counted. It gets its
// time and is then asked again, for a minute.
func TestCollectorHangs(t *testing.T) {
	var log testkit.Buffer
	p := &peer{answer: func(r *http.Request, _ int) (*http.Response, error) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}}
	synctest.Test(t, func(t *testing.T) {
		tr := inBubble(t, p, &log)
		began := time.Now()
		flood(tr, 512)
		synctest.Wait() // the first batch is on its way
		flood(tr, 5000)
		testkit.Equal(t, time.Since(began), 0, "calls waited for")
		wantCounts(t, tr, 0, 904, 0, 0)
		testkit.Equal(t, len(tr.queue), 2048, "calls wait")
		elapse(2 * time.Minute)
		testkit.Equal(t, tr.Failed.Load(), 512, "have failed")
		if n := len(p.times()); n < 7 || n > 20 {
			t.Errorf("%d requests in two minutes", n)
		}
		if n := strings.Count(log.String(), "the collector does not take spans"); n != 2 {
			t.Errorf("the log has it %d times in two minutes:\n%s", n, log.String())
		}
	})
	testkit.Want(t, strings.Contains(log.String(), "collector=collector.test") && strings.Contains(log.String(), "deadline exceeded"),
		"%v", log.String())
}

// What a collector answers decides whether its batch is sent again.
func TestAnswers(t *testing.T) {
	for _, tc := range []struct {
		answer   func(*http.Request, int) (*http.Response, error)
		requests int  // of the batch, 0: more than one
		exported bool // in the end
	}{
		{status(200), 1, true},
		{status(202), 1, true},
		{status(204), 1, true},
		{status(500), 1, false},
		{status(400), 1, false},
		{status(404), 1, false},
		{status(302, "Location", "http://other.test/v1/traces"), 1, false},
		{then(status(429), 2), 3, true},
		{then(status(502), 2), 3, true},
		{then(status(503), 2), 3, true},
		{then(status(504), 2), 3, true},
		{then(breaks(io.ErrUnexpectedEOF), 2), 3, true},
		{then(breaks(errors.New("no such host")), 4), 5, true},
		{status(503), 0, false},
		{breaks(errors.New("no such host")), 0, false},
		{status(503, "Retry-After", "soon"), 0, false},
	} {
		p := &peer{answer: tc.answer}
		synctest.Test(t, func(t *testing.T) {
			tr := inBubble(t, p, io.Discard)
			flood(tr, 512)
			elapse(3 * time.Minute)
			if n := len(p.times()); tc.requests > 0 && n != tc.requests || tc.requests == 0 && (n < 5 || n > 20) {
				t.Errorf("%d requests, want %d", n, tc.requests)
			}
			if tc.exported {
				wantCounts(t, tr, 512, 0, 0, 0)
			} else {
				wantCounts(t, tr, 0, 0, 512, 0)
			}
			p.recover()
			flood(tr, 512)
			synctest.Wait()
			if n := tr.Exported.Load(); n == 0 || n%512 != 0 {
				t.Errorf("the next batch: %d are exported", n)
			}
		})
	}
}

// A collector has its Retry-After, but no more than a minute.
func TestRetryAfter(t *testing.T) {
	for header, least := range map[string]time.Duration{"7": 7 * time.Second, "59": 59 * time.Second, "86400": time.Minute} {
		p := &peer{answer: then(status(429, "Retry-After", header), 1)}
		synctest.Test(t, func(t *testing.T) {
			tr := inBubble(t, p, io.Discard)
			flood(tr, 512)
			elapse(2 * time.Minute)
			if at := p.times(); len(at) != 2 || at[1]-at[0] < least || at[1]-at[0] > least+firstPause {
				t.Errorf("after %s it is asked at %v", header, at)
			}
			wantCounts(t, tr, 512, 0, 0, 0)
		})
	}
}

func TestPartialSuccess(t *testing.T) {
	p := &peer{answer: func(r *http.Request, n int) (*http.Response, error) {
		w := httptest.NewRecorder()
		collector.Reject([]int64{12, 100_000, -5, 0}[n-1], "too old")(w, r)
		return w.Result(), nil
	}}
	synctest.Test(t, func(t *testing.T) {
		tr := inBubble(t, p, io.Discard)
		for i, sums := range [][2]int{{500, 12}, {500, 524}, {1012, 524}, {1524, 524}} {
			flood(tr, 512)
			synctest.Wait()
			if wantCounts(t, tr, sums[0], 0, 0, sums[1]); len(p.times()) != i+1 {
				t.Errorf("%d requests", len(p.times()))
			}
		}
	})
}

// Close sends what waits, each batch once, and takes no longer than it may.
func TestClose(t *testing.T) {
	for name, tc := range map[string]struct {
		answer           func(*http.Request, int) (*http.Response, error)
		exported, failed int
		took             time.Duration
	}{
		"answers": {nil, 1501, 0, 0},
		"fails":   {status(503), 0, 1501, 0},
		"hangs": {func(r *http.Request, _ int) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}, 0, 1501, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tr := New(options(t, "http://collector.test", io.Discard))
				tr.sender.http = &peer{answer: tc.answer}
				flood(tr, 1500)
				record(tr, 0)
				began := time.Now()
				tr.Close(time.Second)
				testkit.Equal(t, time.Since(began), tc.took, "it took")
				wantCounts(t, tr, tc.exported, 0, tc.failed, 0)
			})
		})
	}
}

// With a collector over a network: one that answers, one that breaks off, and none.
func TestOverTheNetwork(t *testing.T) {
	c := collector.Start(t)
	tr := New(options(t, c.URL, io.Discard))
	flood(tr, 512)
	c.Await(t, 512)
	c.Instead(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, "less")
	})
	flood(tr, 512)
	testkit.Eventually(t, 10*time.Second, "a failure", func() bool { return tr.Failed.Load() == 512 })
	c.Instead(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	flood(tr, 512)
	testkit.Eventually(t, 10*time.Second, "two more requests", func() bool { return len(c.Requests()) >= 4 })
	c.Instead(nil)
	c.Await(t, 1024)
	tr.Close(10 * time.Second)
	wantCounts(t, tr, 1024, 0, 512, 0)

	tr = New(options(t, fmt.Sprintf("http://127.0.0.1:%d", testkit.FreePorts(t, 1)), io.Discard))
	flood(tr, 600)
	tr.Close(10 * time.Second)
	wantCounts(t, tr, 0, 0, 600, 0)
}

// Every span of calls that end at once on many shards is counted once, and those that are
// counted as exported have come.
func TestEverySpanIsCounted(t *testing.T) {
	c := collector.Start(t)
	tr := New(options(t, c.URL, io.Discard))
	tr.SetShare(1)
	var shards sync.WaitGroup
	for range 4 {
		shards.Go(func() {
			for range 5000 {
				sampledCall(tr, []byte("/shop.Orders/Get"))
			}
		})
	}
	shards.Wait()
	tr.Close(10 * time.Second)
	exported, full := tr.Exported.Load(), tr.Full.Load()
	testkit.Want(t, exported+full == 40_000 && tr.Failed.Load() == 0 && exported >= mostSpans && exported == uint64(len(c.Spans())),
		"%d are exported, %d came, %d found no room, %d failed", exported, len(c.Spans()), full, tr.Failed.Load())
	ids := map[string]bool{}
	for _, s := range c.Spans() {
		ids[s.ID] = true
	}
	testkit.Want(t, len(ids) == int(exported), "%d spans have %d ids", exported, len(ids))
}

// What a log has of a failure is no secret.
func TestSecretsStayOut(t *testing.T) {
	var log testkit.Buffer
	o := options(t, "http://127.0.0.1:1/v1/traces?api_key=hush", &log)
	o.Header.Set("Authorization", "Bearer hush")
	tr := New(o)
	record(tr, 0)
	tr.Close(time.Second)
	testkit.Want(t, strings.Contains(log.String(), "127.0.0.1:1") && !strings.Contains(log.String(), "hush"), "%v", log.String())
}
