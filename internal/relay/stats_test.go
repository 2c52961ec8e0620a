package relay

import "testing"

// of returns what is known of one method.
func (s Stats) of(t *testing.T, name string) MethodStats {
	t.Helper()
	for _, m := range s.Methods {
		if m.Method == name {
			return m
		}
	}
	t.Fatalf("no counters of %s", name)
	return MethodStats{}
}

// A bound belongs to its bucket.
func TestHistogramBounds(t *testing.T) {
	table := newStatsTable()
	var h histogram
	for i, limit := range table.limits {
		h.observe(limit, &table.limits)
		h.observe(limit+1, &table.limits)
		if h.counts[i] == 0 || h.counts[i+1] == 0 {
			t.Errorf("bound %v: %v", limit, h.counts)
		}
	}
	if n := h.counts[buckets-1]; n != 1 {
		t.Errorf("above the last bound: %d", n)
	}
}
