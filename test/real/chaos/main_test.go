//go:build real || soak

// Package chaos_test has everything happen at once, by chance and for long: faults,
// changes by the operator, load; docs/conformance.md says what holds.
package chaos_test

import (
	"testing"

	"github.com/cabrank/cabrank/test/real/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
