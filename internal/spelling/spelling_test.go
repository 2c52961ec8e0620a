package spelling_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/spelling"
	"github.com/cabrank/cabrank/internal/testkit"
)

func TestNearest(t *testing.T) {
	known := []string{"quantity", "items", "id"}
	for name, want := range map[string]string{
		"quantiyt": "quantity", "item": "items", "qty": "", "xx": "", "": "",
		strings.Repeat("q", 200): "",
	} {
		testkit.Equal(t, spelling.Nearest(name, known), want, "nearest to %q", name)
	}
}

// A name without its package, or with a typing error in it, comes first.
func TestSorted(t *testing.T) {
	known := []string{"grpc.health.v1.Health", "shop.v1.Cart", "shop.v1.Orders"}
	for name, first := range map[string]string{
		"Cart": "shop.v1.Cart", "shop.v1.Ordres": "shop.v1.Orders", "health.Health": "grpc.health.v1.Health",
	} {
		got := spelling.Sorted(name, known)
		testkit.Want(t, got[0] == first && len(got) == 3, "by %q: %q", name, got)
	}
	testkit.Want(t, slices.IsSorted(known), "the given list was sorted itself")
}

func TestDistance(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want int
	}{{"", "abc", 3}, {"abc", "abc", 0}, {"abc", "acb", 1}, {"abc", "abd", 1}, {"abc", "ab", 1}} {
		testkit.Equal(t, spelling.Distance(tc.a, tc.b), tc.want, "%q to %q", tc.a, tc.b)
	}
}
