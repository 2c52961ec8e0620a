//go:build !soak && race

package goal

// The race detector makes everything slow, and finds nothing new in many trials.
const (
	trials = 2
	noisy  = 10
)
