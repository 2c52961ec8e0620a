//go:build real || soak

// Package languages_test holds the binary in front of workers in Ruby, Python, Node
// and Go to what users of each language see.
package languages_test

import (
	"testing"

	"github.com/cabrank/cabrank/test/real/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
