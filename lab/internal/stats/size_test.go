//go:build !soak && !race

package stats_test

// The short form: a share of 5 % is known to 0.5 %.
const (
	trials     = 2_000
	bootstraps = 1_000 // of the bootstrap, which is slow
)
