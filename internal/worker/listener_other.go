//go:build !linux

package worker

import "errors"

// errBlind never comes: where nobody can tell, nothing is said either.
var errBlind = errors.New("not on this system")

// listenerOwners accepts every listener: only Linux tells whose it is.
func listenerOwners(int, string, string) ([]int, error) { return nil, nil }

// listensOn knows nothing: only Linux tells who listens where.
func listensOn(int) []string { return nil }

// sharedAddress knows nothing, as listensOn.
func sharedAddress([]int, uint64) (string, []int, uint64) { return "", nil, 0 }
