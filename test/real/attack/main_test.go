//go:build real || soak

// Package attack_test sends real callers that mean harm, or are merely too many or
// too slow, against the binary, and holds what it promises the others.
package attack_test

import (
	"testing"

	"github.com/cabrank/cabrank/test/real/harness"
)

func TestMain(m *testing.M) {
	harness.Main(m, harness.Role{Name: flooderRole, Run: runFlooder}, harness.Role{Name: steadyRole, Run: runSteady}, harness.Role{Name: webFlooderRole, Run: runWebFlooder})
}
