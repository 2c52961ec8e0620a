package trial

import "testing"

func TestTogether(t *testing.T) {
	got := together([]string{"a: no ruby.", "b: no python: install it.", "c: no ruby."})
	if want := "a, c: no ruby. b: no python: install it."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
