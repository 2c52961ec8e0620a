//go:build !linux

package podnet

import (
	"context"
	"errors"
	"io"
)

// Serve fails.
func Serve(io.ReadCloser, io.WriteCloser, func(ctx context.Context, how, addr string) error) error {
	return errors.New("network namespaces need Linux")
}
