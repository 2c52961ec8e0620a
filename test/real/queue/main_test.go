//go:build real || soak

// Package queue_test holds which worker gets a call, when, and what becomes of a call
// that cannot have one.
package queue_test

import (
	"testing"

	"github.com/cabrank/cabrank/test/real/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
