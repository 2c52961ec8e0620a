package h2

import (
	"math/rand/v2"
	"testing"
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
		if len(b) != 0 || cap(b) < n {
			t.Fatalf("Get(%d): %d of %d bytes", n, len(b), cap(b))
		}
		out = append(out, b)
	}
	for _, b := range out {
		pool.Put(b)
	}
	if budget.Used() != 0 {
		t.Errorf("%d bytes in use", budget.Used())
	}
	kept := 0
	for _, list := range pool.free {
		for _, b := range list {
			kept += cap(b)
		}
	}
	if most := classes*cacheBytes + 2*cacheFloor<<maxClass; kept > most {
		t.Errorf("%d bytes are kept, %d are allowed", kept, most)
	}
}

// R11: half of the budget is pressed, all of it exceeded.
func TestBudget(t *testing.T) {
	budget := &Budget{Total: 64 << 10}
	pool := NewPool(budget)
	a := pool.Get(32 << 10)
	if budget.Pressed() || budget.Exceeded() {
		t.Error("half is not more than half")
	}
	b := pool.Get(4 << 10)
	if !budget.Pressed() || budget.Exceeded() {
		t.Error("more than half is pressed")
	}
	c := pool.Get(64 << 10)
	if !budget.Exceeded() {
		t.Error("more than all is exceeded")
	}
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
		if b[3*i] != byte(i) || b[3*i+1] != byte(i>>8) || b[3*i+2] != byte(i>>16) {
			t.Fatalf("byte %d has changed", 3*i)
		}
	}
	if budget.Used() != int64(cap(b)) {
		t.Errorf("%d bytes in use for a buffer of %d", budget.Used(), cap(b))
	}
	pool.Put(b)
}
