//go:build soak

package goal

// The long form, for what docs/lab-load.md says.
const (
	trials = 500
	noisy  = 3000
)
