//go:build race

package relay

// checkStates has tests, which run with the race detector, check each change of a call's state.
const checkStates = true
