package config

import (
	"testing"

	"github.com/cabrank/cabrank/internal/callers"
)

// Slots that adapt begin between their bounds, whichever source gave these.
func TestAutoSlots(t *testing.T) {
	for _, test := range []struct {
		file, flag string
		auto       bool
		slots      int
		cancel     string // R5: who can stop frees its slot
	}{
		{"slots: auto", "", true, firstAutoSlots, "free"},
		{"slots: 8-200", "", true, 8, "free"},
		{"slots: auto 1-3", "", true, 3, "free"},
		{"slots: auto\non_cancel: hold", "", true, firstAutoSlots, "hold"},
		{"slots: auto", "7", false, 7, "hold"},
		{"slots: 7", "auto", true, firstAutoSlots, "free"},
		{"slots: 7\non_cancel: finish", "", false, 7, "finish"},
	} {
		from := sources(map[string]string{"cabrank.yml": test.file})
		if test.flag != "" {
			from.Flags = map[string]string{"slots": test.flag}
		}
		c := mustLoad(t, from)
		if w := c.Workers; w.Slots.Adapts() != test.auto || w.Slots.N != test.slots || c.CancelledSlots().String() != test.cancel {
			t.Errorf("%q and --slots %q: auto %t, %d slots, %s on cancel", test.file, test.flag, w.Slots.Adapts(), w.Slots.N, c.CancelledSlots())
		}
	}
}

func TestCallerKeys(t *testing.T) {
	for text, want := range map[string]CallerKey{
		"peer": {By: callers.ByPeer}, "Authority": {By: callers.ByAuthority}, "none": {}, "metadata:x-tenant": {callers.ByMetadata, "x-tenant"},
	} {
		c := mustLoad(t, sources(nil, "CABRANK_FAIR_KEY="+text))
		if c.Fair.Key != want {
			t.Errorf("%s gives %+v", text, c.Fair.Key)
		}
	}
}

func TestKeyBurst(t *testing.T) {
	for _, test := range []struct {
		file string
		want int
	}{
		{"limits.calls_per_second: 20", 20},
		{"limits.calls_per_second: 0.5", 1},
		{"limits.calls: 3", 0},
	} {
		c := mustLoad(t, sources(map[string]string{"cabrank.yml": test.file}))
		if got := c.Limits.KeyBurst(); got != test.want {
			t.Errorf("%q gives a burst of %d, want %d", test.file, got, test.want)
		}
	}
}
