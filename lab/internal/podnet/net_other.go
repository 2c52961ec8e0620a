//go:build !linux

package podnet

import (
	"context"
	"errors"
	"io"
)

// Net is never there.
type Net struct{}

var errLinux = errors.New("network namespaces need Linux")

// Start fails.
func Start([]string) (*Net, error) { return nil, errLinux }

// Serve fails.
func Serve(io.Reader, io.Writer, func(ctx context.Context, how, addr string) error) error {
	return errLinux
}

// Enter is nothing.
func (n *Net) Enter() []string { return nil }

// Set fails.
func (n *Net) Set(Plan) error { return errLinux }

// Ask fails.
func (n *Net) Ask(string, string) error { return errLinux }

// Close does nothing.
func (n *Net) Close() {}
