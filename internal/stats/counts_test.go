package stats

import "testing"

// A bound belongs to its bucket.
func TestHistogramBounds(t *testing.T) {
	var h histogram
	for i, limit := range bounds {
		h.observe(limit)
		h.observe(limit + 1)
		if h.counts[i] == 0 || h.counts[i+1] == 0 {
			t.Errorf("bound %v: %v", limit, h.counts)
		}
	}
	if n := h.counts[len(bounds)]; n != 1 {
		t.Errorf("above the last bound: %d", n)
	}
}
