package stats_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/lab/internal/stats"
)

// A plan is the same for ever: a report that names its seed can be repeated.
func TestPlanStays(t *testing.T) {
	got := stats.Plan(1, 4, 3)
	want := []stats.Round{
		{Seed: 5388655572385189, Order: []int{1, 2, 0}},
		{Seed: 213258914218634, Order: []int{1, 0, 2}},
		{Seed: 7301264717830305, Order: []int{0, 2, 1}},
		{Seed: 1184358647615643, Order: []int{2, 0, 1}},
	}
	testkit.Want(t, reflect.DeepEqual(got, want), "plan %+v, want %+v", got, want)
}

// Every order is as likely as any other, and no round depends on the one before.
func TestPlanIsFair(t *testing.T) {
	const rounds = 60_000
	seen := map[[3]int]int{}
	same := 0
	var before []int
	for _, r := range stats.Plan(2, rounds, 3) {
		seen[[3]int(r.Order)]++
		if slices.Equal(r.Order, before) {
			same++
		}
		before = r.Order
	}
	testkit.Want(t, len(seen) == 6, "%d orders of three arms, want 6", len(seen))
	for order, n := range seen {
		testkit.Want(t, n >= rounds/6*95/100 && n <= rounds/6*105/100, "order %v in %d of %d rounds", order, n, rounds)
	}
	testkit.Want(t, same >= rounds/6*95/100 && same <= rounds/6*105/100,
		"the order is that of the round before in %d of %d rounds", same, rounds)
}

func TestPlanSeeds(t *testing.T) {
	seeds := map[uint64]bool{}
	for seed := range uint64(100) {
		for _, r := range stats.Plan(seed, 100, 2) {
			if seeds[r.Seed] || r.Seed >= 1<<53 {
				t.Fatalf("seed %d: %d is there twice, or too large", seed, r.Seed)
			}
			seeds[r.Seed] = true
		}
	}
}
