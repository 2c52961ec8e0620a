//go:build real || soak

// Package fibonacci_test holds the Fibonacci example to its README: servers and fronts
// of both flavours, what they answer, and how they fail.
package fibonacci_test

import (
	"testing"

	"github.com/cabrank/cabrank/test/real/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
