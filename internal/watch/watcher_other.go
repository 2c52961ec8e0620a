//go:build !linux

package watch

import (
	"errors"
	"net"
)

// Sleeper is a connection that nobody reads from. Wake does not block.
type Sleeper interface{ Wake() }

// Watcher does not exist here.
type Watcher struct{}

// Close does nothing.
func (*Watcher) Close() {}

// Post does not exist here.
type Post struct{}

// Watch returns an error: each connection needs a goroutine here.
func (*Watcher) Watch(net.Conn, Sleeper) (*Post, error) { return nil, errors.ErrUnsupported }

// Arm returns an error.
func (*Post) Arm() error { return errors.ErrUnsupported }

// Leave does nothing.
func (*Post) Leave() {}
