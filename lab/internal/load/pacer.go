package load

import (
	"math/rand/v2"
	"time"

	"github.com/cabrank/cabrank/internal/testkit/alarm"
)

const (
	// maxRate keeps the mean gap between two calls above a microsecond.
	maxRate = 1_000_000
	// grid is what the moments of an open loop are rounded up to: finer, and
	// waking up for every call would cost the client more than the call does.
	grid = 100 * time.Microsecond
	// longestNap bounds how late a pacer sees that it has to stop.
	longestNap = 20 * time.Millisecond
)

// pacer starts calls at random moments (exponential gaps), as many independent
// callers do, on one connection after the other. It never waits for answers.
// Every run has the same moments: the seed is fixed.
type pacer struct {
	clients []*client
	sig     *signals
	gap     float64 // mean, in nanoseconds
	random  *rand.Rand
	exact   time.Duration // moment of the next call, since the epoch
	due     time.Duration // the same on the grid
	turn    int
}

func newPacer(rate float64, clients []*client, sig *signals) *pacer {
	return &pacer{clients: clients, sig: sig, gap: float64(time.Second) / rate, random: rand.New(rand.NewPCG(1, 2)), exact: sig.now()}
}

// next draws the moment of the next call.
func (p *pacer) next() {
	p.exact += time.Duration(p.random.ExpFloat64() * p.gap)
	p.due = (p.exact + grid - 1).Truncate(grid)
}

// run returns when the run stops, or with the error of the alarm.
func (p *pacer) run() error {
	a, err := alarm.New()
	if err != nil {
		return err
	}
	defer a.Close()
	for !p.sig.stop.Load() {
		p.start(p.sig.now())
		if err := a.Wait(min(p.due-p.sig.now(), longestNap)); err != nil {
			return err
		}
	}
	return nil
}

// start hands out the calls that are due now. A call that a late pacer starts
// late still counts from the moment at which it was due.
func (p *pacer) start(now time.Duration) {
	for p.due <= now {
		c := p.clients[p.turn]
		c.arrived = append(c.arrived, p.due)
		p.turn = (p.turn + 1) % len(p.clients)
		p.next()
	}
	for _, c := range p.clients {
		if len(c.arrived) == 0 {
			continue
		}
		c.conn.Do(c.arrive) //nolint:errcheck // the reader of a broken connection reports it
		c.arrived = c.arrived[:0]
	}
}

// arrive starts what the pacer has brought, between two batches of answers.
func (c *client) arrive() error {
	c.due.add(c.arrived...)
	return c.startDue()
}
