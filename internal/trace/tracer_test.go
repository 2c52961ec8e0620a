package trace

import (
	"fmt"
	"hash/maphash"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/testkit"
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

func wantCounts(t *testing.T, tr *Tracer, exported, full, failed, rejected int) {
	t.Helper()
	got := [4]uint64{tr.Exported.Load(), tr.Full.Load(), tr.Failed.Load(), tr.Rejected.Load()}
	wanted := [4]uint64{uint64(exported), uint64(full), uint64(failed), uint64(rejected)}
	testkit.Want(t, got == wanted, "exported, full, failed, rejected are %d, want %d", got, wanted)
}

func TestWhichCallsAreRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := inBubble(t, &peer{}, io.Discard)
		begin := func(from Context, found bool) *Call { return tr.Begin(from, found, "10.0.0.7", 0) }
		testkit.Want(t, begin(comes(0), true) == nil && begin(comes(2), true) == nil, "a call of a trace that is not recorded has spans")
		c := begin(comes(3), true)
		testkit.Need(t, c != nil && c.From == comes(3) && c.self.span != (ID{}) && c.self.span != c.From.Span, "a sampled call has %+v", c)
		testkit.Want(t, begin(Context{}, false) == nil, "a call without a trace begins one, at a share of 0")
		tr.SetShare(1)
		a, b := begin(Context{}, false), begin(Context{}, false)
		testkit.Need(t, a != nil && b != nil && a.From.Flags == 1 && a.From.Span == (ID{}) && a.From.Trace != b.From.Trace,
			"new traces are %+v and %+v", a, b)
		if _, ok := Parse(a.Parent(nil, -1)); !ok {
			t.Errorf("its worker gets %s", a.Parent(nil, -1))
		}
		testkit.Want(t, begin(comes(0), true) == nil, "a call of a trace that is not recorded begins one")
		tr.SetShare(0.5)
		n := 0
		for range 2000 {
			if begin(Context{}, false) != nil {
				n++
			}
		}
		testkit.Want(t, n >= 800 && n <= 1200, "%d of 2,000 begin a trace, want half", n)
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
		testkit.Equal(t, tr.Limited.Load(), 300, "are counted")
		testkit.Equal(t, recorded("10.0.0.7", 1, time.Second), 0, "a shard that is behind has more")
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
		testkit.Want(t, sum == 100_000, "of 100,000 addresses with a call each %d are recorded", sum)
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
	n, limited := recorded.Load(), tr.Limited.Load()
	testkit.Want(t, n == 100 && limited == 3900, "%d are recorded, %d are counted as limited", n, limited)
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
				testkit.Must(b, err)
				size = len(body)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(calls)), "ns/call")
			b.ReportMetric(float64(size)/float64(len(calls)), "B/call")
		})
	}
}
