//go:build real || soak

// Package protocol_test holds the binary to the wire: the interop suite of grpc-go,
// h2spec, and bytes that pass as they are.
package protocol_test

import (
	"testing"

	"github.com/cabrank/cabrank/test/real/harness"
)

func TestMain(m *testing.M) { harness.Main(m, harness.Role{Name: relayedRole, Run: runRelayed}) }
