package testbed

import (
	"strings"
	"testing"
)

func TestTail(t *testing.T) {
	var end output
	for range 3 {
		end.Write([]byte(strings.Repeat("x", tailBytes-1) + "y"))
	}
	if got := end.String(); len(got) != tailBytes || !strings.HasSuffix(got, "y") {
		t.Errorf("tail keeps %d bytes", len(got))
	}
}
