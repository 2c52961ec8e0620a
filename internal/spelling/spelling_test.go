package spelling_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/spelling"
)

func TestNearest(t *testing.T) {
	known := []string{"quantity", "items", "id"}
	for name, want := range map[string]string{
		"quantiyt": "quantity", "item": "items", "qty": "", "xx": "", "": "",
		strings.Repeat("q", 200): "",
	} {
		if got := spelling.Nearest(name, known); got != want {
			t.Errorf("nearest to %q: %q, want %q", name, got, want)
		}
	}
}

// A name without its package, or with a typing error in it, comes first.
func TestSorted(t *testing.T) {
	known := []string{"grpc.health.v1.Health", "shop.v1.Cart", "shop.v1.Orders"}
	for name, first := range map[string]string{
		"Cart": "shop.v1.Cart", "shop.v1.Ordres": "shop.v1.Orders", "health.Health": "grpc.health.v1.Health",
	} {
		got := spelling.Sorted(name, known)
		if got[0] != first || len(got) != 3 {
			t.Errorf("by %q: %q", name, got)
		}
	}
	if !slices.IsSorted(known) {
		t.Error("the given list was sorted itself")
	}
}

func TestDistance(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want int
	}{{"", "abc", 3}, {"abc", "abc", 0}, {"abc", "acb", 1}, {"abc", "abd", 1}, {"abc", "ab", 1}} {
		if got := spelling.Distance(tc.a, tc.b); got != tc.want {
			t.Errorf("%q to %q: %d, want %d", tc.a, tc.b, got, tc.want)
		}
	}
}
