package relay

import (
	"testing"
	"unsafe"

	"github.com/cabrank/cabrank/internal/head"
)

// A call counts with the memory that it takes.
func TestCallSize(t *testing.T) {
	if size := unsafe.Sizeof(call{}) + unsafe.Sizeof(attempt{}) + unsafe.Sizeof(head.Head{}); size > callSize || size < callSize/4*3 {
		t.Errorf("a call takes %d bytes, and is counted with %d", size, callSize)
	}
}
