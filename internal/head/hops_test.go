package head

import "testing"

// Counting hops allocates nothing.
func TestHopsAllocateNothing(t *testing.T) {
	value := []byte("3, 5")
	if n := testing.AllocsPerRun(100, func() { _ = hopsOf(value) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
