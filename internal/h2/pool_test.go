package h2

import (
	"math/rand/v2"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

// A buffer has the room that was asked for, also one that was used before, and
// the budget counts what is out.
func TestPool(t *testing.T) {
	budget := &Budget{Total: 10 << 20}
	pool := NewPool(budget)
	rnd := rand.New(rand.NewPCG(1, 11))
	var out [][]byte
	for range 5000 {
		if len(out) > 20 || len(out) > 0 && rnd.IntN(2) == 0 {
			i := rnd.IntN(len(out))
			pool.Put(out[i])
			out[i] = out[len(out)-1]
			out = out[:len(out)-1]
			continue
		}
		n := rnd.IntN(1 << (8 + rnd.IntN(15)))
		b := pool.Get(n)
		testkit.Need(t, len(b) == 0 && cap(b) >= n, "Get(%d): %d of %d bytes", n, len(b), cap(b))
		out = append(out, b)
	}
	for _, b := range out {
		pool.Put(b)
	}
	testkit.Want(t, budget.Used() == 0, "%d bytes in use", budget.Used())
	if kept := keptBytes(pool); kept > keptMost || kept != pool.kept {
		t.Errorf("%d bytes are kept (%d by its own count), %d are allowed", kept, pool.kept, keptMost)
	}
}

func keptBytes(p *Pool) int {
	kept := 0
	for _, s := range p.free {
		for _, b := range s.list {
			kept += cap(b)
		}
	}
	return kept
}

// What was not needed between two calls of Trim is dropped; what was needed
// stays, also if it was back in time.
func TestPoolTrim(t *testing.T) {
	pool := NewPool(&Budget{Total: 10 << 20})
	use := func(n int) {
		var out [][]byte
		for range n {
			out = append(out, pool.Get(16<<10))
		}
		for _, b := range out {
			pool.Put(b)
		}
	}
	for _, step := range []struct{ used, left int }{{10, 10}, {4, 4}, {4, 4}, {7, 7}, {1, 1}, {0, 0}, {0, 0}} {
		use(step.used)
		pool.Trim()
		if got := keptBytes(pool); got != step.left*16<<10 || got != pool.kept || pool.Keeps() != (got > 0) {
			t.Errorf("%d were used: %d bytes are left (%d by its own count), keeps %v; want %d buffers",
				step.used, got, pool.kept, pool.Keeps(), step.left)
		}
	}
}

// R11: half of the budget is pressed, all of it exceeded.
func TestBudget(t *testing.T) {
	budget := &Budget{Total: 64 << 10}
	pool := NewPool(budget)
	a := pool.Get(32 << 10)
	testkit.Want(t, !budget.Pressed() && !budget.Exceeded(), "half is not more than half")
	b := pool.Get(4 << 10)
	testkit.Want(t, budget.Pressed() && !budget.Exceeded(), "more than half is pressed")
	c := pool.Get(64 << 10)
	testkit.Want(t, budget.Exceeded(), "more than all is exceeded")
	for _, x := range [][]byte{a, b, c, nil} {
		pool.Put(x)
	}
}

// Append and Grow move what is there and give the old buffer back.
func TestPoolAppend(t *testing.T) {
	budget := &Budget{Total: 64 << 20}
	pool := NewPool(budget)
	var b []byte
	for i := range 100_000 {
		b = pool.Append(b, []byte{byte(i), byte(i >> 8), byte(i >> 16)})
	}
	for i := range 100_000 {
		testkit.Need(t, b[3*i] == byte(i) && b[3*i+1] == byte(i>>8) && b[3*i+2] == byte(i>>16), "byte %d has changed", 3*i)
	}
	testkit.Want(t, budget.Used() == int64(cap(b)), "%d bytes in use for a buffer of %d", budget.Used(), cap(b))
	pool.Put(b)
}
