//go:build !race

package relay

const checkStates = false
