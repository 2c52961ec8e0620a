//go:build (real || soak) && !linux

package real_test

import "errors"

// becomeSubreaper fails: only Linux has subreapers.
func becomeSubreaper() error { return errors.ErrUnsupported }
