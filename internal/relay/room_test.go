package relay

import (
	"testing"
	"unsafe"

	"github.com/cabrank/cabrank/internal/head"
	"github.com/cabrank/cabrank/internal/testkit"
)

// A call counts with the memory that it takes.
func TestCallSize(t *testing.T) {
	size := unsafe.Sizeof(call{}) + unsafe.Sizeof(attempt{}) + unsafe.Sizeof(head.Head{})
	testkit.Want(t, size <= callSize && size >= callSize/4*3, "a call takes %d bytes, and is counted with %d", size, callSize)
}
