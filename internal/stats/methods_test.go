package stats

import (
	"testing"

	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/testkit"
)

// A method's rule goes before its service's, also if it allows less.
func TestRules(t *testing.T) {
	p := rulesOf([]MethodRule{
		{Pattern: "/shop.Cart/*", Idempotent: true, Retries: 1, RetryOn: []grpcwire.Code{grpcwire.Unavailable}},
		{Pattern: "/shop.Cart/Show", Idempotent: true, Retries: 3, RetryOn: []grpcwire.Code{grpcwire.Aborted, grpcwire.Unauthenticated}},
		{Pattern: "/shop.Cart/Pay"},
		{Pattern: "/shop.Cart/Sum", Retries: 5}, // of no effect: it may not run twice
	})
	for path, retries := range map[string]int{
		"/shop.Cart/List": 1, "/shop.Cart/Show": 3, "/shop.Cart/": 1,
		"/shop.Cart/Pay": -1, "/shop.Cart/Sum": -1,
		"/shop.Cart": -1, "/shop.Carts/List": -1, "/shop.Cart/List/All": -1, "/": -1, "": -1, "*": -1,
	} {
		got := -1
		if of, _ := p.Find([]byte(path)); of != nil {
			got = of.Retries
		}
		testkit.Want(t, got == retries, "%s: got %d retries, want %d (-1: no rule)", path, got, retries)
	}
	show, _ := p.Find([]byte("/shop.Cart/Show"))
	for code := range grpcwire.Code(grpcwire.NumCodes) {
		want := code == grpcwire.Aborted || code == grpcwire.Unauthenticated
		testkit.Want(t, show.Repeats(code) == want, "%v: got %v", code, !want)
	}
}

// A bound belongs to its bucket.
func TestHistogramBounds(t *testing.T) {
	var h histogram
	for i, limit := range bounds {
		h.observe(limit)
		h.observe(limit + 1)
		testkit.Want(t, h.counts[i] != 0 && h.counts[i+1] != 0, "bound %v: %v", limit, h.counts)
	}
	testkit.Equal(t, h.counts[len(bounds)], 1, "above the last bound")
}
