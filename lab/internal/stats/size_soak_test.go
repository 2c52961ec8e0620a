//go:build soak

package stats_test

// The long form, for the tables: a share of 5 % is known to 0.15 %.
const (
	trials     = 20_000
	bootstraps = 5_000
)
