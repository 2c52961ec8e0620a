//go:build !real && !soak

package main

import (
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

// No test leaves a goroutine or a listener behind. With the tag real the test
// binary is cabrank itself, see script_test.go.
func TestMain(m *testing.M) { testkit.VerifyMain(m) }
