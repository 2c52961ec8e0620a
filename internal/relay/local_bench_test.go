package relay

import (
	"runtime"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/callers"
	"github.com/cabrank/cabrank/internal/testkit"
)

// localCalls makes calls of this process, so many at a time, and plays their worker.
// It runs inside of turns: in one the calls begin, in the next they are answered, and
// in the one behind that they are over.
type localCalls struct {
	*memory
	local  *Local
	calls  []LocalCall
	ask    LocalRequest
	sent   bool
	rounds int
	done   chan struct{}
}

func newLocalCalls(t testing.TB, flying int) *localCalls {
	t.Helper()
	g := newRig(t)
	b := &localCalls{memory: newMemory(t, g, false, 100), calls: make([]LocalCall, flying)}
	b.local = g.local(callers.Caller{Address: "192.0.2.1"})
	b.ask = LocalRequest{Head: headOf(request(hello, "user-agent", "memory")...), Body: hi(), End: true}
	b.st.do(func() {
		b.drainOutput(b.worker)
		b.drainOutput(b.caller)
	})
	return b
}

// run makes so many rounds of calls.
func (b *localCalls) run(rounds int) {
	b.rounds, b.done = rounds, make(chan struct{})
	b.st.Post(b)
	<-b.done
}

// Run implements shard.Task.
func (b *localCalls) Run(time.Duration) {
	if b.sent {
		b.sent = false
		b.drainOutput(b.worker)
		for range b.calls {
			b.feedCall(b.worker, b.response, b.next)
			b.next += 2
		}
		b.st.Post(b)
		return
	}
	b.drainOutput(b.worker)
	for i := range b.calls {
		c := &b.calls[i]
		if c.st == nil {
			continue // the first round
		}
		if !c.ended || c.code != 0 || len(c.body) != len(hi()) {
			panic("a call was not answered")
		}
		c.release()
	}
	if b.rounds--; b.rounds < 0 {
		for i := range b.calls {
			b.calls[i].st = nil
		}
		close(b.done)
		return
	}
	for i := range b.calls {
		if err := b.local.open(&b.calls[i], &b.ask); err != nil {
			panic(err)
		}
	}
	b.sent = true
	b.st.Post(b)
}

// BenchmarkLocalCall is BenchmarkUnaryCall for a caller in this process: the same,
// with the engine at the other end of its connection and the turns of the shard.
// "steady" has 25 calls on their way, "alone" one at a time, in three turns each.
func BenchmarkLocalCall(b *testing.B) {
	for _, flying := range []int{1, 25} {
		b.Run(map[bool]string{true: "alone", false: "steady"}[flying == 1], func(b *testing.B) {
			calls := newLocalCalls(b, flying)
			calls.run(10)
			b.ReportAllocs()
			b.ResetTimer()
			calls.run(max(b.N/flying, 1))
		})
	}
}

// How much memory a caller in this process may take after a call: once it is idle, and in the
// second before.
const (
	idleLocal    = 1 << 10
	restingLocal = 6 << 10
)

func TestLocalIdleSize(t *testing.T) {
	if testing.Short() {
		t.Skip("measures memory")
	}
	const locals = 1000
	b := newLocalCalls(t, 1)
	b.run(10)
	all := make([]*Local, locals)
	before := liveBytes(b)
	for i := range all {
		all[i] = b.g.ServeLocal(callers.Caller{Address: "192.0.2.1"})
		b.local = all[i]
		b.run(3)
	}
	resting := (liveBytes(b) - before) / locals
	testkit.Eventually(t, soon, "the connections to end", func() (ended bool) {
		b.st.do(func() { ended = len(b.st.callers) == 1 }) // the caller of memory
		return ended
	})
	idle := (liveBytes(b) - before) / locals
	t.Logf("a caller takes %d bytes while it rests, %d when it is idle", resting, idle)
	if resting > restingLocal || idle > idleLocal {
		t.Errorf("want %d and %d bytes at most", restingLocal, idleLocal)
	}
	for _, l := range all {
		l.Close()
	}
}

func liveBytes(b *localCalls) int {
	b.st.do(func() { b.st.Pool().Trim(); b.st.Pool().Trim() })
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
