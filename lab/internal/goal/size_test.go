//go:build !soak && !race

package goal

// The short form.
const (
	trials = 40  // searches of each service
	noisy  = 300 // searches with noise
)
