package relay

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/rank"
)

// reload changes the options of a relay that runs, from those that newPipeRig
// gave it.
func (g *rig) reload(change ...func(*Options)) { g.Reconfigure(options(change)) }

// Reloads while everything else happens at once: no call is left behind and
// nothing races.
func TestReloadsUnderStress(t *testing.T) {
	for seed := range uint64(2) {
		h := newWildHouse(t, seed)
		h.helpers.Go(func() {
			h.nowAndThen(77, func(dice *rand.Rand) { h.reload(func(o *Options) { changeAtRandom(o, dice) }) })
		})
		h.rush(300).Wait()
		h.wantCalm()
	}
}

func changeAtRandom(o *Options, dice *rand.Rand) {
	yes := func() bool { return dice.IntN(2) == 0 }
	o.QueueLength, o.QueueTimeout = dice.IntN(200), time.Duration(1+dice.IntN(1000))*time.Millisecond
	o.CallTimeout, o.MinReady = time.Duration(dice.IntN(2))*time.Second, 1+dice.IntN(3)
	o.ReplayBytes, o.BufferTotal = dice.IntN(32<<10), int64(1+dice.IntN(8))<<20
	o.StallTimeout, o.AbsorbBytes = time.Duration(dice.IntN(3))*time.Second, dice.IntN(1<<20)
	o.MaxStreams, o.MaxHops, o.Explain = uint32(1+dice.IntN(200)), 1+dice.IntN(8), yes()
	o.Limits.Window, o.Limits.Buffer = int32(16+dice.IntN(64))<<10, (64+dice.IntN(1000))<<10
	o.Limits.Connections, o.KeepAlive = 1+dice.IntN(20), time.Duration(dice.IntN(2))*time.Second
	o.Keys.Concurrent, o.Keys.Rate, o.Keys.Burst = dice.IntN(100), float64(dice.IntN(2)*1000), 100
	o.Keys.Weights = map[string]float64{"127.0.0.1": float64(1 + dice.IntN(5))}
	o.OnCancel = []rank.OnCancel{rank.Hold, rank.Free}[dice.IntN(2)]
	o.Rank.StreamSlots = dice.IntN(4)
	if yes() {
		o.Keys.By, o.Keys.Metadata = []KeySource{ByNothing, ByAuthority, ByMetadata}[dice.IntN(3)], "user-agent"
	}
	if yes() {
		o.Methods, o.RetryBudget = []MethodRule{anyFailure()}, RetryBudget{PerSecond: float64(dice.IntN(1000))}
	}
	if yes() {
		o.Rank.Order, o.Rank.Admit = rank.FIFO, rank.BoundedLength
	}
}

// What the shape of a relay follows from does not change.
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
		len(s.Lanes) != 0 || s.SlotsMax != 0 || s.naming.lanes["k"] != 0 {
		t.Errorf("got %+v", s.Options)
	}
}
