//go:build real || soak

// Package operations_test does with the binary what its operators do: start, command,
// reload, upgrade and stop it, and read what it says.
package operations_test

import (
	"testing"

	"github.com/cabrank/cabrank/test/real/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
