//go:build !linux

package testbed

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// Inside is always false.
func Inside() (bool, error) { return false, nil }

func network() string { return "" }

// Reenter fails: CPU of another process is read from Linux' /proc.
func Reenter(int) (exit int) {
	fmt.Fprintln(os.Stderr, "lab: measuring processes needs Linux")
	return 1
}

func ownNetwork(*syscall.SysProcAttr) error { return errors.New("network namespaces need Linux") }
