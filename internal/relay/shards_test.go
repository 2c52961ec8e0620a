package relay

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
)

// flyingPerShard is how many calls a shard has on their way at once in the
// benchmark of shards.
const flyingPerShard = 25

// BenchmarkShards is the relay's own work for a call on so many shards at once,
// each with its own caller, its own connection to the one endpoint of all, and a
// goroutine in the part of its poller. N shards on N cores should do close to N
// times the calls of one.
func BenchmarkShards(b *testing.B) {
	for n := 1; n <= runtime.GOMAXPROCS(0); n *= 2 {
		b.Run(fmt.Sprint(n), func(b *testing.B) { benchmarkShards(b, n) })
	}
}

func benchmarkShards(b *testing.B, n int) {
	b.Helper()
	lines := newMemories(b, n)
	var running sync.WaitGroup
	b.ReportAllocs()
	b.ResetTimer()
	for _, m := range lines {
		running.Go(func() { m.batches(b.N / n / flyingPerShard) })
	}
	running.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
}

// newMemories makes a relay with n shards and a pair of connections on each.
func newMemories(t testing.TB, n int) []*memory {
	t.Helper()
	g := newRig(t, func(o *Options) { o.Shards = n })
	e := g.AddEndpoint("w1", 2*n*flyingPerShard, false)
	g.Up(e, "none", "")
	var lines []*memory
	for _, st := range g.shards {
		m := newMemoryOn(t, g, st, e)
		m.request = m.ask(request(hello, "user-agent", "memory")...)
		st.do(func() {
			m.drainOutput(m.worker)
			m.drainOutput(m.caller)
		})
		lines = append(lines, m)
	}
	return lines
}

// batches carries batches of calls. It keeps the lock of the shard, as its
// poller would hardly ever lose it: else the flusher would be woken for links
// that have no transport.
func (m *memory) batches(n int) {
	m.st.do(func() {
		for range n {
			m.calls(flyingPerShard)
		}
	})
}

// Shards that work at the same time count every call once, and nothing of one
// is left with another.
func TestShardsAtOnce(t *testing.T) {
	const shards, batches = 3, 40
	lines := newMemories(t, shards)
	var running sync.WaitGroup
	for _, m := range lines {
		running.Go(func() { m.batches(batches) })
	}
	running.Wait()
	m, want := lines[0].g.Stats().of(t, hello), uint64(shards*batches*flyingPerShard)
	seconds, waits := uint64(0), uint64(0)
	for i := range m.Seconds.Counts {
		seconds, waits = seconds+m.Seconds.Counts[i], waits+m.Wait.Counts[i]
	}
	if n := m.Codes["OK"]; n != want || seconds != want || waits != want || len(m.Seconds.Counts) != len(m.Seconds.Bounds)+1 {
		t.Errorf("%d calls were answered, want %d; counted are %d times and %d waits", n, want, seconds, waits)
	}
}
