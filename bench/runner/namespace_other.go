//go:build !linux

package main

import (
	"fmt"
	"os"
)

func inside() bool { return false }

func network() string { return "" }

func raiseFiles() (uint64, error) { return 0, nil }

// reenter fails: CPU of another process is read from Linux' /proc.
func reenter(int) int {
	fmt.Fprintln(os.Stderr, "bench: the side-by-side benchmark needs Linux")
	return 1
}
