//go:build !linux

package handover

import "syscall"

// siblingAttr is nil: only Linux can give a new process another parent.
func siblingAttr() *syscall.SysProcAttr { return nil }
