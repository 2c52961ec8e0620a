//go:build !linux

package worker

import "errors"

// errBlind is never returned here.
var errBlind = errors.New("not on this system")

// listenerOwners accepts every listener: only Linux tells which process has it open.
func listenerOwners(int, string, string) ([]int, error) { return nil, nil }

// listensOn is not known: only Linux tells which process listens where.
func listensOn(int) []string { return nil }

// sharedAddress is not known, like listensOn.
func sharedAddress([]int, uint64) (string, []int, uint64) { return "", nil, 0 }
