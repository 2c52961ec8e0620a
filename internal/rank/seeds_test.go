//go:build !soak

package rank

// simulatedSeeds is how many random sequences each simulation of a worker runs
// through; with the tag soak it is more.
const simulatedSeeds = uint64(1)
