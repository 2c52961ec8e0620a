package relay

import (
	"testing"
)

// Shares are given to identities by their names, also when the configuration is
// loaded again.
func TestSharesOfIdentities(t *testing.T) {
	n := naming{Keys: Keys{Weights: map[string]float64{"alice": 4}}}
	if w := n.termsOf(identityKey + "alice").Weight; w != 4 {
		t.Errorf("alice has a weight of %v", w)
	}
	if w := n.termsOf("192.0.2.1").Weight; w != 0 {
		t.Errorf("a stranger has a weight of %v", w)
	}
}

// The log names a caller by what is known of it.
func TestNamesOfCallers(t *testing.T) {
	for want, c := range map[string]Caller{
		"": {}, "192.0.2.1": {Address: "192.0.2.1"}, "alice": {Identity: "alice"},
		"alice at 192.0.2.1": {Address: "192.0.2.1", Identity: "alice"},
	} {
		if id := (&callerID{Caller: c}); id.String() != want {
			t.Errorf("%+v is named %q", c, id)
		}
	}
}
