//go:build !linux

package redisd

import "syscall"

// endsWithParent is for Linux alone.
func endsWithParent() *syscall.SysProcAttr { return nil }
