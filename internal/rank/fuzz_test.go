package rank

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// FuzzRank is TestRankWithEverything with bytes for dice: whatever callers,
// workers and clocks do, in whatever order.
func FuzzRank(f *testing.F) {
	for b := range balances {
		f.Add(append([]byte{byte(b)}, bytes.Repeat([]byte{3, 141, 59, 26, 53, 58, 97, 93, 23, 84}, 40)...))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) == 0 {
			return
		}
		dice := &dice{data: data[1:], after: rand.NewPCG(1, 1)}
		h := newHavoc(t, Balance(data[0])%balances, rand.New(dice))
		for steps := 0; len(dice.data) > 0 && steps < 2000; steps++ {
			h.step()
			h.check()
		}
		h.finish()
	})
}

// dice is a source of numbers that are bytes of the data, one after the other,
// and behind its end those of another source: whoever throws until a number
// suits him would otherwise throw for ever.
type dice struct {
	data  []byte
	after rand.Source
}

// Uint64 implements rand.Source. All bytes of a number are the same one, for
// ranges are made of the highest bits or of the lowest.
func (d *dice) Uint64() uint64 {
	if len(d.data) == 0 {
		return d.after.Uint64()
	}
	b := d.data[0]
	d.data = d.data[1:]
	return uint64(b) * 0x0101010101010101
}
