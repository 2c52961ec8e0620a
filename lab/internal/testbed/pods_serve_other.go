//go:build !linux

package testbed

import (
	"context"
	"errors"
	"io"
)

// ServePods fails.
func ServePods(io.ReadCloser, io.WriteCloser, func(ctx context.Context, how, addr string) error) error {
	return errors.New("network namespaces need Linux")
}
