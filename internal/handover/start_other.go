//go:build !linux

package handover

import "syscall"

// siblingAttr is nothing: only Linux gives a new process another parent.
func siblingAttr() *syscall.SysProcAttr { return nil }
