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
)

const (
	// A booting worker is looked at after 20 ms, then ever more rarely, but at
	// least every 100 ms: one refused connect costs some 20 µs, and the last
	// pause is lost capacity.
	bootPollFirst = 20 * time.Millisecond
	bootPollMax   = 100 * time.Millisecond

	// settleFor is how long a worker is left alone between its answer to the question
	// by which it is ready and its first call. A thread is free a moment after its
	// answer, and a worker with one thread would refuse a call that waits (R1).
	settleFor = 10 * time.Millisecond
)

// errStranger tells that a process outside the worker's group listens on its
// address.
var errStranger = errors.New("a process outside the worker's group listens on its address")

// finding is what one look at a worker found.
type finding struct {
	health.Answer
	owners  []int // processes that hold the listener; only of the first that is good
	taken   bool  // somebody else listens on the worker's address (R19)
	unknown bool  // the worker has no such method as the warm-up call wants
	blind   bool  // nobody can tell whose the listener is
}

// failed is a finding of no answer.
func failed(reason string) finding { return finding{Answer: health.Answer{Reason: reason}} }

// order is what a prober is told to do.
type order bool

const (
	askIt     order = false // put the health question
	bootAgain order = true  // wait until it serves, as at the boot
)

// prober finds out how one life of a worker is doing. run is its only
// goroutine; it ends with its context.
type prober struct {
	group    int
	place    place
	timeout  time.Duration
	warmUp   WarmUp
	asker    *check.Asker
	orders   chan order     // capacity 1
	findings chan<- finding // read by the worker's goroutine

	absent bool // nobody listened at the last look; run's alone
	warmed bool // a warm-up call was made; run's alone
}

// newProber makes the prober of a life. The error is a place that is none.
func (w *worker) newProber(l *life) (*prober, error) {
	o := w.s.settings()
	asker, err := check.Open(check.Options{
		Network: l.place.network, Address: l.place.address,
		Interval: o.HealthInterval, Timeout: o.HealthTimeout, Redial: bootPollMax, Work: w.activity,
	})
	return &prober{
		group: l.group, place: l.place, timeout: o.HealthTimeout, warmUp: w.tenure.version.options.WarmUp,
		asker: asker, orders: make(chan order, 1), findings: l.findings,
	}, err
}

// run looks quickly until the worker serves, then does as it is told.
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

// boot reports whether the worker came to serve before ctx ended: its health
// says so and, if there is one, it has answered the warm-up call.
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

// look asks for the first time. Before that the listener must be there and be
// the worker's own: a stranger that answers SERVING must not be believed (R19).
func (p *prober) look(ctx context.Context) finding {
	dialer := net.Dialer{Timeout: p.timeout}
	conn, err := dialer.DialContext(ctx, p.place.network, p.place.address)
	if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist) {
		p.absent = true
		return failed("nothing listens on " + p.place.told())
	}
	if err != nil {
		return failed(err.Error())
	}
	// Only the answer to the connect mattered.
	_ = conn.Close()
	owners, err := listenerOwners(p.group, p.place.network, p.place.address)
	blind := errors.Is(err, errBlind)
	if err != nil && !blind {
		f := failed(err.Error())
		f.taken = errors.Is(err, errStranger)
		return f
	}
	if p.absent {
		// The question may wait for long, during which the last finding is wrong.
		p.absent = false
		p.tell(ctx, failed("it takes connections, and has not answered the health question"))
	}
	return finding{Answer: p.asker.Ask(ctx), owners: owners, blind: blind}
}

// ask has the health question put if it is due, and nobody waits for an answer.
func (w *worker) ask(l *life, now time.Time) {
	if !l.asking && !l.waiting && !l.stopped && l.prober.asker.Due(l.last, l.judge.IsUrgent()) {
		l.asking, l.asked = true, now
		l.prober.orders <- askIt // the prober is waiting for it
	}
}

// tell reports false when nobody listens any more.
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
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
