package rank

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// kind is a kind of rank for random operations.
type kind int

const (
	full   kind = iota // everything on
	byHash             // and calls wait for their own endpoints
	plain              // without anything that the model does not know
	kinds              // how many there are
)

// newHavoc returns the owner of all calls of a rank.
func newHavoc(t *testing.T, k kind, random *rand.Rand) *havoc {
	t.Helper()
	if k == plain {
		return new(house).owner(t, random, 30).withModel()
	}
	return newHouse(random, k == byHash, 4).owner(t, random, 64)
}

// Random operations with everything on: accounts with terms,
// lanes, methods of all kinds, deadlines, ghosts, refusals, endpoints that come and
// go. No slot is over-used, nobody is forgotten or told twice, nobody waits who could
// run, and in the end nothing is left. Without all that, the rank does what the model
// says.
func TestRankAtRandom(t *testing.T) {
	t.Parallel()
	seeds, steps := uint64(10), 3000
	if testing.Short() {
		seeds = 2
	}
	for k := range kinds {
		if k == plain {
			seeds *= 4 // the model sees more of each step
		}
		for seed := range seeds {
			t.Run(fmt.Sprint("kind ", k, " seed ", seed), func(t *testing.T) {
				t.Parallel()
				h := newHavoc(t, k, rand.New(rand.NewPCG(seed, uint64(k))))
				for range steps {
					h.step()
					h.check()
				}
				h.finish()
			})
		}
	}
}

// FuzzRank is TestRankAtRandom with bytes for dice: whatever callers, workers and
// clocks do, in whatever order.
func FuzzRank(f *testing.F) {
	for k := range kinds {
		f.Add(append([]byte{byte(k)}, bytes.Repeat([]byte{3, 141, 59, 26, 53, 58, 97, 93, 23, 84}, 40)...))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) == 0 {
			return
		}
		dice := &dice{data: data[1:], after: rand.NewPCG(1, 1)}
		h := newHavoc(t, kind(data[0])%kinds, rand.New(dice))
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

// Several owners of calls use one rank at a time, as shards do (R23), while another
// goroutine opens and closes endpoints and one more ticks. No endpoint ever has more
// calls than slots, and every call ends.
func TestConcurrentShards(t *testing.T) {
	random := rand.New(rand.NewPCG(0, 23))
	house := newHouse(random, false, 3)
	house.shared = true
	for _, e := range house.endpoints {
		house.rank.SetReady(e.Endpoint, true, 0, nil)
	}
	c := &clock{rank: house.rank, done: make(chan struct{})}
	var owners, helpers sync.WaitGroup
	for i := range uint64(4) {
		h := house.owner(t, rand.New(rand.NewPCG(i, 23)), 8)
		owners.Go(func() { c.run(h, 3000) })
	}
	helpers.Go(c.tick)
	helpers.Go(func() { c.flap(house.endpoints) })
	owners.Wait()
	close(c.done)
	helpers.Wait()
	last := house.owner(t, random, 0)
	last.now = c.now()
	last.finish()
}

// clock is virtual; time passes by being looked at.
type clock struct {
	rank *Rank
	at   atomic.Int64
	leap sync.RWMutex // is held by who leaps over some time, and shared by who does something
	done chan struct{}
}

func (c *clock) now() time.Duration { return time.Duration(c.at.Add(int64(time.Microsecond))) }

// run has the owner of calls bring so many to their end, and then what is left.
func (c *clock) run(h *havoc, ends int) {
	for {
		c.act(h, h.ends < ends)
		switch {
		case h.some(onSlot) != nil, h.ends < ends && h.some(nowhere) != nil:
			continue
		case h.some(inLine) == nil:
			return
		}
		select {
		case l := <-h.mailbox:
			h.open(l)
		case <-time.After(10 * time.Second):
			h.Errorf("nobody is told anything: %+v", c.rank.Snapshot())
			return
		}
	}
}

// act has the owner do one thing, or if there is to be no more end a call.
func (c *clock) act(h *havoc, more bool) {
	c.leap.RLock()
	defer c.leap.RUnlock()
	h.now = c.now()
	h.read()
	if runs := h.some(onSlot); more {
		h.advance(h.IntN(80))
	} else if runs != nil {
		runs.end(OK)
	}
}

// tick is the driver of Tick: instead of sleeping until the next instant it leaps
// there.
func (c *clock) tick() {
	for {
		select {
		case <-c.done:
			return
		case <-c.rank.Wake():
		}
		for next := c.now(); next != 0; {
			c.leap.Lock()
			c.at.Store(max(c.at.Load(), int64(next)))
			c.leap.Unlock()
			var notices []Notice
			notices, next = c.rank.Tick(c.now(), nil)
			deliver(notices)
		}
	}
}

// flap closes and opens one endpoint after another.
func (c *clock) flap(endpoints []*havocEndpoint) {
	for i := 0; ; i++ {
		select {
		case <-c.done:
			return
		default:
		}
		e := endpoints[i%len(endpoints)].Endpoint
		c.leap.RLock()
		deliver(c.rank.SetReady(e, false, c.now(), nil))
		deliver(c.rank.SetReady(e, true, c.now(), nil))
		c.leap.RUnlock()
	}
}
