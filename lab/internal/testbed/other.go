//go:build !linux

package testbed

import (
	"context"
	"errors"
	"io"
	"syscall"
)

func ownNetwork(*syscall.SysProcAttr) error { return errors.New("network namespaces need Linux") }

// RaiseFiles does nothing.
func RaiseFiles() (uint64, error) { return 0, nil }

// ServePods fails.
func ServePods(io.ReadCloser, io.WriteCloser, func(ctx context.Context, how, addr string) error) error {
	return errors.New("network namespaces need Linux")
}
