//go:build real || soak

// Package workers_test has workers boot, hang, die and come back, and more or fewer of
// them be wanted.
package workers_test

import (
	"testing"

	"github.com/cabrank/cabrank/test/real/harness"
)

func TestMain(m *testing.M) {
	harness.Main(m, harness.Role{Name: turningRole, Run: runTurning}, harness.Role{Name: describedRole, Run: runDescribed})
}
