package trial

import (
	"slices"
	"testing"
)

func TestTogether(t *testing.T) {
	got := together([]string{"a: no ruby.", "b: no python: install it.", "c: no ruby."})
	if want := []string{"a, c: no ruby.", "b: no python: install it."}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
