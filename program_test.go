//go:build real || soak

package cabrank_test

import (
	"os"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

// One dependency that calls methods by name, as templates do, and the linker keeps
// the methods of every type: 3 MB that nobody uses. What calls methods by name has the
// mark <ReflectMethod> in what `make build LDFLAGS=-dumpdep` prints.
func TestProgramIsLean(t *testing.T) {
	info, err := os.Stat("bin/cabrank")
	testkit.Need(t, err == nil, "%v: run 'make build'", err)
	t.Logf("bin/cabrank has %d bytes", info.Size())
	holdCeiling(t, programBytes, int(info.Size()))
}
