package worker

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"sync/atomic"
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

// prober finds out how one life of a worker is doing. run is its only
// goroutine; it ends with its context.
type prober struct {
	group    int
	place    place
	interval time.Duration
	timeout  time.Duration
	warmUp   WarmUp
	activity func() Work
	findings chan<- finding // read by the worker's goroutine

	// paused is set while the process is stopped by a signal: what it does not
	// answer then says nothing about its health.
	paused atomic.Bool
	// urgent is set while the worker has been silent for so long that it is asked
	// every second.
	urgent atomic.Bool
	asked  atomic.Pointer[time.Time] // when the last question was put
	// deserted is set when the processes that listened are gone: another one may
	// come, and is looked for as at the boot.
	deserted atomic.Bool

	absent bool // nobody listened at the last look; run's alone
	warmed bool // a warm-up call was made; run's alone
}

// run looks quickly until the worker serves, then asks it when it is silent.
func (p *prober) run(ctx context.Context) {
	asker, err := check.Open(check.Options{
		Network: p.place.network, Address: p.place.address,
		Interval: p.interval, Timeout: p.timeout, Redial: bootPollMax, Work: p.activity, Urgent: p.urgent.Load,
	})
	if err != nil {
		p.tell(ctx, failed(err.Error()))
		return
	}
	defer asker.Close()
	for p.boot(ctx, asker) {
		if !p.watch(ctx, asker) {
			return
		}
	}
}

// boot reports whether the worker came to serve before ctx ended: its health
// says so and, if there is one, it has answered the warm-up call.
func (p *prober) boot(ctx context.Context, asker *check.Asker) bool {
	for pause := bootPollFirst; ; pause = min(pause*5/4, bootPollMax) {
		f := p.look(ctx, asker)
		if f.IsGood() && p.warmUp.Method != "" {
			f = p.warm(ctx, asker, f)
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
func (p *prober) look(ctx context.Context, asker *check.Asker) finding {
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
	return finding{Answer: asker.Ask(ctx), owners: owners, blind: blind}
}

// watch asks a worker that has been ready whenever it is due, until ctx ends or
// nobody listens any more; it reports the latter.
func (p *prober) watch(ctx context.Context, asker *check.Asker) (deserted bool) {
	last := health.Answer{Said: health.Serving, Asked: time.Now()}
	for sleep(ctx, min(p.interval, tickEvery)) {
		if p.deserted.Swap(false) {
			return true
		}
		if p.paused.Load() || !asker.Due(last) {
			continue
		}
		now := time.Now()
		p.asked.Store(&now)
		last = asker.Ask(ctx)
		if !p.tell(ctx, finding{Answer: last}) {
			return false
		}
	}
	return false
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

// lastAsked is when the last question was put, zero for never.
func (p *prober) lastAsked() time.Time {
	if asked := p.asked.Load(); asked != nil {
		return *asked
	}
	return time.Time{}
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
