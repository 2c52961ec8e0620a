//go:build real || soak

// Package names_test holds the binary in front of workers that are found by name.
package names_test

import (
	"testing"

	"github.com/cabrank/cabrank/test/real/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
