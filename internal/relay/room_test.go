package relay

import (
	"testing"
	"unsafe"
)

// A call counts with the memory that it takes.
func TestCallSize(t *testing.T) {
	if size := unsafe.Sizeof(call{}) + unsafe.Sizeof(requestHead{}); size > callSize || size < callSize/4*3 {
		t.Errorf("a call takes %d bytes, and is counted with %d", size, callSize)
	}
}
