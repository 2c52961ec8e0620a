package cli

import "testing"

// Escape sequences go to terminals that understand them.
func TestTerminal(t *testing.T) {
	for _, test := range []struct {
		kind, noColor    string
		inPlace, colored bool
	}{
		{"xterm-256color", "", true, true},
		{"xterm-256color", "1", true, false},
		{"dumb", "", false, false},
		{"", "", false, false},
	} {
		if s := terminal(test.kind, test.noColor); !s.Terminal || s.InPlace != test.inPlace || s.Colored != test.colored {
			t.Errorf("TERM=%s NO_COLOR=%s: %+v", test.kind, test.noColor, s)
		}
	}
}
