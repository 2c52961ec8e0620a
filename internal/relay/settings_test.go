package relay

import (
	"testing"

	"github.com/cabrank/cabrank/internal/rank"
)

// reload changes the options of a relay that runs, from those that newPipeRig
// gave it.
func (g *rig) reload(change ...func(*Options)) { g.Reconfigure(options(change)) }

// Options that a running relay is built on do not change.
func TestReloadKeepsWhatIsFixed(t *testing.T) {
	g := newRig(t, func(o *Options) {
		o.Shards, o.BalanceKey = 2, "x-user"
	})
	g.reload(func(o *Options) {
		o.Shards, o.Log, o.Random, o.SlotsMin, o.SlotsMax = 7, nil, nil, 1, 2
		o.Lanes = []Lane{{LaneOptions: rank.LaneOptions{Name: "a"}, Keys: []string{"k"}}}
	})
	s := g.settings()
	if s.Shards != 2 || s.Log == nil || s.Random == nil || s.BalanceKey != "x-user" ||
		len(s.Lanes) != 0 || s.SlotsMax != 0 || s.naming.Lanes["k"] != 0 {
		t.Errorf("got %+v", s.Options)
	}
}
