package worker

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"syscall"
	"time"

	"github.com/cabrank/cabrank/internal/health"
	"github.com/cabrank/cabrank/internal/health/check"
	"github.com/cabrank/cabrank/internal/process"
)

const (
	// A booting worker is looked at after 20 ms, then ever more rarely, but at
	// least every 100 ms: one refused connect costs some 20 µs, and the last
	// pause is lost capacity.
	bootPollFirst = 20 * time.Millisecond
	bootPollMax   = 100 * time.Millisecond

	// settleFor is the pause between the answer that makes a worker ready and its first
	// call. A thread is free a moment after its answer, and a worker with one thread would
	// refuse a waiting call (R1).
	settleFor = 10 * time.Millisecond
)

// finding is the result of one look at a worker.
type finding struct {
	health.Answer
	owners  []int // processes that have the listener open; only in the first good finding
	taken   bool  // another process listens on the worker's address (R19)
	unknown bool  // the worker does not have the method of the warm-up call
	blind   bool  // the owner of the listener cannot be found out
}

// failed is a finding without an answer.
func failed(reason string) finding { return finding{Answer: health.Answer{Reason: reason}} }

// order tells a prober what to do.
type order bool

const (
	askIt     order = false // put the health question
	bootAgain order = true  // wait until it serves, as at the boot
)

// prober asks one process of a worker for its health. run is its only goroutine; it ends
// with its context.
type prober struct {
	group    process.Group
	endpoint endpoint
	timeout  time.Duration
	warmUp   WarmUp
	warmTime time.Duration // of one attempt
	asker    *check.Asker
	orders   chan order     // capacity 1
	findings chan<- finding // read by the worker's goroutine

	absent bool // nothing listened at the last look; owned by run
	warmed bool // a warm-up call was made; owned by run
}

// newProber makes the prober of a process. The error is an address that is not valid.
func (w *worker) newProber(l *child) (*prober, error) {
	o, begun := w.s.settings(), w.occupancy.version.options
	asker, err := check.Open(check.Options{
		Network: l.endpoint.network, Address: l.endpoint.address,
		Interval: o.HealthInterval, Timeout: o.HealthTimeout, Redial: bootPollMax, Work: w.activity,
	})
	return &prober{
		group: l.group, endpoint: l.endpoint, timeout: o.HealthTimeout, warmUp: begun.WarmUp, warmTime: begun.BootTimeout,
		asker: asker, orders: make(chan order, 1), findings: l.findings,
	}, err
}

// run looks often until the worker serves, then follows its orders.
func (p *prober) run(ctx context.Context) {
	defer p.asker.Close()
	for p.boot(ctx) {
		for again := askIt; again == askIt; {
			select {
			case again = <-p.orders:
			case <-ctx.Done():
				return
			}
			if again == askIt && !p.tell(ctx, finding{Answer: p.asker.Ask(ctx)}) {
				return
			}
		}
	}
}

// boot looks until the worker serves: its health service says so, and it has answered
// the warm-up call, if one is configured. It reports false if ctx ended first.
func (p *prober) boot(ctx context.Context) bool {
	for pause := bootPollFirst; ; pause = min(pause*5/4, bootPollMax) {
		f := p.look(ctx)
		if f.IsGood() && p.warmUp.Method != "" {
			f = p.warm(ctx, f)
		}
		if f.IsGood() && !sleep(ctx, settleFor) || !p.tell(ctx, f) {
			return false
		}
		if f.IsGood() {
			return true
		}
		if !sleep(ctx, pause) {
			return false
		}
	}
}

// look asks the first question. Before that a process of the worker must listen: the
// SERVING of a stranger must not count (R19).
func (p *prober) look(ctx context.Context) finding {
	dialer := net.Dialer{Timeout: p.timeout}
	conn, err := dialer.DialContext(ctx, p.endpoint.network, p.endpoint.address)
	if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist) {
		p.absent = true
		return failed("nothing listens on " + p.endpoint.told())
	}
	if err != nil {
		return failed(err.Error())
	}
	// Only the answer to the connect mattered.
	_ = conn.Close()
	owners, err := p.group.Listeners(p.endpoint.network, p.endpoint.address)
	blind := errors.Is(err, process.ErrBlind)
	if err != nil && !blind {
		f := failed(err.Error())
		f.taken = errors.Is(err, process.ErrStranger)
		return f
	}
	if p.absent {
		// The question may take long, and meanwhile the last finding would be wrong.
		p.absent = false
		p.tell(ctx, failed("it takes connections, and has not answered the health question"))
	}
	return finding{Answer: p.asker.Ask(ctx), owners: owners, blind: blind}
}

// ask orders the health question if it is due and none is under way.
func (w *worker) ask(l *child, now time.Time) {
	if !l.asking && !l.waiting && !l.stopped && l.prober.asker.Due(l.last, l.judge.IsUrgent()) {
		l.asking, l.asked = true, now
		l.prober.orders <- askIt // the prober waits for an order
	}
}

// tell passes a finding on. It reports false when ctx ended first.
func (p *prober) tell(ctx context.Context, f finding) bool {
	select {
	case p.findings <- f:
		return true
	case <-ctx.Done():
		return false
	}
}

// sleep reports false when ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
