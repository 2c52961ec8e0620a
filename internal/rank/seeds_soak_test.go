//go:build soak

package rank

// simulatedSeeds is how many random sequences each simulation of a worker runs
// through; without the tag soak it is one.
const simulatedSeeds = uint64(5)
