//go:build !linux

package door

import (
	"errors"
	"net"
)

// ignoreNew fails: only Linux has filters that a user may attach.
func ignoreNew(*net.TCPListener) error { return errors.ErrUnsupported }
