//go:build !linux

package process

import "errors"

// ErrStranger and ErrBlind are never returned here.
var (
	ErrStranger = errors.New("not on this system")
	ErrBlind    = errors.New("not on this system")
)

// Listeners accepts every listener: only Linux tells which process has it open.
func (Group) Listeners(string, string) ([]int, error) { return nil, nil }

// ListensOn is not known: only Linux tells which process listens where.
func (Group) ListensOn() []string { return nil }

// SharedAddress is not known, like ListensOn.
func SharedAddress([]Group, uint64) (string, []Group, uint64) { return "", nil, 0 }
