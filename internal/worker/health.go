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

// finding is what one look at a worker told: what its health did, or taken.
type finding uint8

const (
	failed     = finding(health.Failed)
	serving    = finding(health.Serving)
	notServing = finding(health.NotServing)
	busy       = finding(health.Busy)
	// taken: somebody else listens on the worker's address (R19).
	taken = busy + 1
)

// errStranger tells that a process outside the worker's group listens on its
// address.
var errStranger = errors.New("a process outside the worker's group listens on its address")

// verdict is a finding with its ground.
type verdict struct {
	finding  finding
	reason   string    // for the log; empty when serving
	owners   []int     // processes that hold the listener; only of the first serving
	asked    time.Time // when the question was sent
	answered bool      // the worker said something, whatever it was
	refused  bool      // what it said is that it has no free thread
	doubted  bool      // it was asked because calls there should long be over
	unknown  bool      // the worker has no such method as the warm-up call wants
	blind    bool      // nobody can tell whose the listener is
}

// said is the verdict that an answer to the health question makes.
func said(v health.Verdict) verdict {
	return verdict{finding: finding(v.Finding), reason: v.Reason, asked: v.Asked, answered: v.Answered, refused: v.Refused, doubted: v.Doubted}
}

// alive reports whether the answer shows that a thread of the worker's is free, or
// that there is no health service: a refusal does not (R6).
func (v *verdict) alive() bool { return v.answered && !v.refused }

// prober finds out how one life of a worker is doing. run is its only
// goroutine; it ends with its context.
type prober struct {
	group    int
	place    place
	interval time.Duration
	timeout  time.Duration
	warmUp   WarmUp
	activity func() Work
	verdicts chan<- verdict // read by the worker's goroutine

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
	asker, err := health.Open(health.Options{
		Network: p.place.network, Address: p.place.address,
		Interval: p.interval, Timeout: p.timeout, Redial: bootPollMax, Work: p.work,
	})
	if err != nil {
		p.tell(ctx, verdict{finding: failed, reason: err.Error()})
		return
	}
	defer asker.Close()
	for p.boot(ctx, asker) {
		if !p.watch(ctx, asker) {
			return
		}
	}
}

// work is the part of the worker's activity by which answers are judged.
func (p *prober) work() health.Work {
	w := p.activity()
	return health.Work{InFlight: w.InFlight, Answered: w.Answered, Doubtful: w.Doubtful, Urgent: p.urgent.Load()}
}

// boot reports whether the worker came to serve before ctx ended: its health
// says so and, if there is one, it has answered the warm-up call.
func (p *prober) boot(ctx context.Context, asker *health.Asker) bool {
	for pause := bootPollFirst; ; pause = min(pause*5/4, bootPollMax) {
		v := p.look(ctx, asker)
		if v.finding == serving && p.warmUp.Method != "" {
			v = p.warm(ctx, asker, v)
		}
		if v.finding == serving && !sleep(ctx, settleFor) {
			return false
		}
		if !p.tell(ctx, v) {
			return false
		}
		if v.finding == serving {
			return true
		}
		if !sleep(ctx, pause) {
			return false
		}
	}
}

// look asks for the first time. Before that the listener must be there and be
// the worker's own: a stranger that answers SERVING must not be believed (R19).
func (p *prober) look(ctx context.Context, asker *health.Asker) verdict {
	dialer := net.Dialer{Timeout: p.timeout}
	conn, err := dialer.DialContext(ctx, p.place.network, p.place.address)
	if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist) {
		p.absent = true
		return verdict{finding: failed, reason: "nothing listens on " + p.place.told()}
	}
	if err != nil {
		return verdict{finding: failed, reason: err.Error()}
	}
	// Only the answer to the connect mattered.
	_ = conn.Close()
	owners, err := listenerOwners(p.group, p.place.network, p.place.address)
	if errors.Is(err, errStranger) {
		return verdict{finding: taken, reason: err.Error()}
	}
	blind := errors.Is(err, errBlind)
	if err != nil && !blind {
		return verdict{finding: failed, reason: err.Error()}
	}
	if p.absent {
		// The question may wait for long, during which the last verdict is wrong.
		p.absent = false
		p.tell(ctx, verdict{finding: failed, reason: "it takes connections, and has not answered the health question"})
	}
	v := said(asker.Ask(ctx))
	v.owners, v.blind = owners, blind
	return v
}

// watch asks a worker that has been ready whenever it is due, until ctx ends or
// nobody listens any more; it reports the latter.
func (p *prober) watch(ctx context.Context, asker *health.Asker) (deserted bool) {
	last := health.Verdict{Finding: health.Serving, Asked: time.Now(), Answered: true}
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
		if !p.tell(ctx, said(last)) {
			return false
		}
	}
	return false
}

// tell reports false when nobody listens any more.
func (p *prober) tell(ctx context.Context, v verdict) bool {
	select {
	case p.verdicts <- v:
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
