//go:build (real || soak) && !linux

package packages_test

import "github.com/cabrank/cabrank/test/real/harness"

// roles are for machines of examples, which are Linux.
func roles() []harness.Role { return nil }
