//go:build !linux

package harness

import "errors"

func becomeSubreaper() error { return errors.ErrUnsupported }
