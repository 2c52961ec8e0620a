package trace

import (
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/internal/testkit/collector"
)

func TestMain(m *testing.M) { testkit.VerifyMain(m) }

func comes(flags byte) Context { return Context{Trace: [16]byte{1}, Span: ID{2}, Flags: flags} }

// options are those of a tracer for an endpoint, in whose test the relay's clock begins.
func options(t testing.TB, endpoint string, log io.Writer) Options {
	t.Helper()
	o, err := Read(endpoint, func(string) string { return "" })
	testkit.Must(t, err)
	began := time.Now()
	o.Clock = func() time.Duration { return time.Since(began) }
	o.Log = slog.New(slog.NewTextHandler(log, nil))
	return o
}

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

// inBubble returns a tracer for a test under virtual time, whose spans go to a peer.
func inBubble(t *testing.T, p *peer, log io.Writer) *Tracer {
	t.Helper()
	tr := New(options(t, "http://collector.test", log))
	tr.sender.http = p
	t.Cleanup(func() { tr.Close(time.Second) })
	return tr
}

// record records a call of so many parts.
func record(tr *Tracer, parts int) {
	c := tr.Begin(comes(1), true, "10.0.0.7", tr.sender.Clock())
	for range parts {
		c.Begin(Queue, "", "", 0)
	}
	tr.End(c, tr.sender.Clock())
}

// flood records so many spans of calls with one attempt, by callers of many addresses.
func flood(tr *Tracer, spans int) {
	now := tr.sender.Clock()
	for i := range spans / 2 {
		c := tr.Begin(comes(1), true, fmt.Sprint(i), now)
		if c == nil {
			continue
		}
		c.Finish(c.Begin(First, "worker-1", "127.0.0.1:9000", now), grpcwire.OK, "", now)
		tr.End(c, now)
	}
}

// wants fails unless there were requests of so many spans.
func (p *peer) wants(t *testing.T, spans ...int) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Equal(p.size, spans) {
		t.Fatalf("requests of %d spans, want %d", p.size, spans)
	}
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

func wantCounts(t *testing.T, tr *Tracer, exported, full, failed, rejected int) {
	t.Helper()
	got := [4]uint64{tr.Exported.Load(), tr.Full.Load(), tr.Failed.Load(), tr.Rejected.Load()}
	if wanted := [4]uint64{uint64(exported), uint64(full), uint64(failed), uint64(rejected)}; got != wanted {
		t.Errorf("exported, full, failed, rejected are %d, want %d", got, wanted)
	}
}

func TestWhichCallsAreRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := inBubble(t, &peer{}, io.Discard)
		begin := func(from Context, found bool) *Call { return tr.Begin(from, found, "10.0.0.7", 0) }
		if begin(comes(0), true) != nil || begin(comes(2), true) != nil {
			t.Error("a call of a trace that is not recorded has spans")
		}
		c := begin(comes(3), true)
		if c == nil || c.From != comes(3) || c.self.span == (ID{}) || c.self.span == c.From.Span {
			t.Fatalf("a sampled call has %+v", c)
		}
		if begin(Context{}, false) != nil {
			t.Error("a call without a trace begins one, at a share of 0")
		}
		tr.SetShare(1)
		a, b := begin(Context{}, false), begin(Context{}, false)
		if a == nil || b == nil || a.From.Flags != 1 || a.From.Span != (ID{}) || a.From.Trace == b.From.Trace {
			t.Fatalf("new traces are %+v and %+v", a, b)
		}
		if _, ok := Parse(a.Parent(nil, -1)); !ok {
			t.Errorf("its worker gets %s", a.Parent(nil, -1))
		}
		if begin(comes(0), true) != nil {
			t.Error("a call of a trace that is not recorded begins one")
		}
		tr.SetShare(0.5)
		n := 0
		for range 2000 {
			if begin(Context{}, false) != nil {
				n++
			}
		}
		if n < 800 || n > 1200 {
			t.Errorf("%d of 2,000 begin a trace, want half", n)
		}
	})
}

// Without a tracer, and of a call that has no spans, all may be called.
func TestNoTracer(_ *testing.T) {
	var none *Tracer
	c := none.Begin(comes(1), true, "", 0)
	c.KeepState([]byte("a=b"))
	c.Finish(c.Begin(First, "", "", 0), 0, "", 0)
	none.End(c, 0)
	none.Close(0)
}

// elsewhere returns an address that has another counter.
func (t *Tracer) elsewhere(address string) string {
	for i := 0; ; i++ {
		other := fmt.Sprint("10.0.1.", i)
		if maphash.String(t.seed, other)%counters != maphash.String(t.seed, address)%counters {
			return other
		}
	}
}

// Whoever comes sampled gets spans for 100 calls a second and address; in how many addresses
// there are is no memory.
func TestLimitOfAnAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := inBubble(t, &peer{}, io.Discard)
		recorded := func(address string, calls int, at time.Duration) (n int) {
			for range calls {
				if tr.Begin(comes(1), true, address, at) != nil {
					n++
				}
			}
			return n
		}
		for second := range 3 {
			at := time.Duration(second) * time.Second
			if n := recorded("10.0.0.7", 150, at) + recorded("10.0.0.7", 50, at+999*time.Millisecond); n != 100 {
				t.Errorf("in second %d %d are recorded, want 100", second, n)
			}
		}
		if n := tr.Limited.Load(); n != 300 {
			t.Errorf("%d are counted, want 300", n)
		}
		if n := recorded("10.0.0.7", 1, time.Second); n != 0 {
			t.Error("a shard that is behind has more")
		}
		if n := recorded(tr.elsewhere("10.0.0.7"), 200, 2*time.Second); n != 100 {
			t.Errorf("of another address %d are recorded, want 100", n)
		}
		if allocs := testing.AllocsPerRun(20_000, func() {
			tr.allows("2001:db8::1234", 9*time.Second)
		}); allocs != 0 {
			t.Errorf("%v allocations", allocs)
		}
		sum := 0
		for i := range 100_000 {
			sum += recorded(fmt.Sprint("2001:db8::", i), 1, 20*time.Second)
		}
		if sum != 100_000 {
			t.Errorf("of 100,000 addresses with a call each %d are recorded", sum)
		}
	})
}

// Shards count together.
func TestLimitAcrossShards(t *testing.T) {
	tr := New(options(t, "http://collector.test", io.Discard))
	defer tr.Close(time.Second)
	var shards sync.WaitGroup
	var recorded atomic.Int64
	for range 4 {
		shards.Go(func() {
			for range 1000 {
				if tr.Begin(comes(1), true, "10.0.0.7", time.Second) != nil {
					recorded.Add(1)
				}
			}
		})
	}
	shards.Wait()
	if n, limited := recorded.Load(), tr.Limited.Load(); n != 100 || limited != 3900 {
		t.Errorf("%d are recorded, %d are counted as limited", n, limited)
	}
}

// Spans leave when there are 512, else within a second.
func TestBatches(t *testing.T) {
	p := &peer{}
	synctest.Test(t, func(t *testing.T) {
		tr := inBubble(t, p, io.Discard)
		flood(tr, 510)
		synctest.Wait()
		p.wants(t)
		flood(tr, 2)
		synctest.Wait()
		p.wants(t, 512)
		elapse(300 * time.Millisecond)
		record(tr, 2)
		elapse(700 * time.Millisecond)
		p.wants(t, 512, 3)
		flood(tr, 1800)
		synctest.Wait()
		p.wants(t, 512, 3, 512, 512, 512)
		elapse(time.Second)
		p.wants(t, 512, 3, 512, 512, 512, 264)
		wantCounts(t, tr, 2315, 0, 0, 0)
	})
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
		if took := time.Since(began); took != 0 {
			t.Errorf("calls waited for %v", took)
		}
		wantCounts(t, tr, 0, 904, 0, 0)
		if n := len(tr.queue); n != 2048 {
			t.Errorf("%d calls wait", n)
		}
		elapse(2 * time.Minute)
		if n := tr.Failed.Load(); n != 512 {
			t.Errorf("%d have failed", n)
		}
		if n := len(p.times()); n < 7 || n > 20 {
			t.Errorf("%d requests in two minutes", n)
		}
		if n := strings.Count(log.String(), "the collector does not take spans"); n != 2 {
			t.Errorf("the log has it %d times in two minutes:\n%s", n, log.String())
		}
	})
	if !strings.Contains(log.String(), "collector=collector.test") || !strings.Contains(log.String(), "deadline exceeded") {
		t.Error(log.String())
	}
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
				if took := time.Since(began); took != tc.took {
					t.Errorf("it took %v", took)
				}
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

// What a log has of a failure is no secret.
func TestSecretsStayOut(t *testing.T) {
	var log testkit.Buffer
	o := options(t, "http://127.0.0.1:1/v1/traces?api_key=hush", &log)
	o.Header.Set("Authorization", "Bearer hush")
	tr := New(o)
	record(tr, 0)
	tr.Close(time.Second)
	if !strings.Contains(log.String(), "127.0.0.1:1") || strings.Contains(log.String(), "hush") {
		t.Error(log.String())
	}
}

// sampledCall records a call with one attempt, as the relay does.
func sampledCall(tr *Tracer, path []byte) {
	c := tr.Begin(Context{}, false, "10.0.0.7", 0)
	c.Finish(c.Begin(First, "worker-1", "127.0.0.1:9000", 1), grpcwire.OK, "", 2)
	c.Path, c.Known, c.Door = append(c.Path[:0], path...), true, "grpc"
	tr.End(c, 3)
}

// BenchmarkCall is what a sampled call with one attempt costs its shard, and the queue.
func BenchmarkCall(b *testing.B) {
	tr := New(options(b, "http://collector.test", io.Discard))
	tr.SetShare(1)
	tr.Close(time.Second) // the benchmark empties the queue
	path := []byte("/shop.Orders/Get")
	b.ReportAllocs()
	for b.Loop() {
		sampledCall(tr, path)
		tr.spans.Add(-2)
		tr.pool.Put(<-tr.queue)
	}
}

// BenchmarkRequest is what a request of 256 such calls costs, without the network.
func BenchmarkRequest(b *testing.B) {
	for name, plain := range map[string]bool{"gzip": false, "plain": true} {
		b.Run(name, func(b *testing.B) {
			o := options(b, "http://collector.test", io.Discard)
			o.Plain = plain
			tr := New(o)
			tr.SetShare(1)
			tr.Close(time.Second)
			var calls []*Call
			for i := range batch / 2 {
				sampledCall(tr, []byte("/shop.Orders/Get"))
				calls = append(calls, <-tr.queue)
				calls[i].self.end += time.Duration(i * i)
			}
			zero, size := time.Now(), 0
			b.ReportAllocs()
			for b.Loop() {
				body, err := tr.sender.encoder.encode(calls, zero)
				if err != nil {
					b.Fatal(err)
				}
				size = len(body)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(calls)), "ns/call")
			b.ReportMetric(float64(size)/float64(len(calls)), "B/call")
		})
	}
}
