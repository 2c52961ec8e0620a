//go:build !race

package shard

import "testing"

// A call over memory allocates nothing in the steady state.
func TestMemoryCallAllocatesNothing(t *testing.T) {
	u := newUnary(newHost(t), 1000)
	u.calls(1000)
	const calls = 1000
	if n := testing.AllocsPerRun(5, func() { u.calls(calls) }); n > calls/100 {
		t.Errorf("%d calls allocate %v times", calls, n)
	}
}
