//go:build !linux

package testbed

import (
	"errors"
	"syscall"
)

func ownNetwork(*syscall.SysProcAttr) error { return errors.New("network namespaces need Linux") }
