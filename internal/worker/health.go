package worker

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

const (
	// A booting worker is looked at after 20 ms, then ever more rarely, but at
	// least every 100 ms: one refused connect costs some 20 µs, and the last
	// pause is lost capacity.
	bootPollFirst = 20 * time.Millisecond
	bootPollMax   = 100 * time.Millisecond
	// sickPoll is how often a worker is asked that was taken out, that missed a
	// check or is doubtful, unless the health interval is shorter.
	sickPoll = time.Second
	// doubtTimeout bounds the check of a doubtful worker, unless the health
	// timeout is shorter: calls go there until it is known.
	doubtTimeout = time.Second
)

// finding is what one look at a worker told.
type finding uint8

const (
	// failed: no answer, or one that tells of a fault.
	failed finding = iota
	// serving: SERVING, or a worker without health service that answers.
	serving
	// notServing: NOT_SERVING.
	notServing
	// busy: no answer, which is no wonder while calls are in flight (R6).
	busy
	// taken: somebody else listens on the worker's address (R19).
	taken
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
	doubted  bool      // it was asked because calls there should long be over
}

// prober finds out how one life of a worker is doing. run is its only
// goroutine; it ends with its context.
type prober struct {
	group    int
	place    place
	interval time.Duration
	timeout  time.Duration
	activity func() Work
	verdicts chan<- verdict // read by the worker's goroutine

	// paused is set while the process is stopped by a signal: what it does not
	// answer then says nothing about its health.
	paused atomic.Bool
	// deserted is set when the processes that listened are gone: another one may
	// come, and is looked for as at the boot.
	deserted atomic.Bool
}

// run looks quickly until the worker serves, then asks it when it is silent.
func (p *prober) run(ctx context.Context) {
	conn, err := dialHealth(p.place, p.timeout)
	if err != nil {
		p.tell(ctx, verdict{finding: failed, reason: err.Error()})
		return
	}
	defer conn.Close()
	client := grpc_health_v1.NewHealthClient(conn)
	for p.boot(ctx, client) {
		if !p.watch(ctx, client) {
			return
		}
	}
}

// dialHealth makes the connection that health checks have for themselves: it
// takes no slot and, whatever the environment says, no proxy (gruf-relay sent
// its own checks to HTTPS_PROXY).
func dialHealth(at place, timeout time.Duration) (*grpc.ClientConn, error) {
	target := "passthrough:///" + at.address
	if at.network == "unix" {
		target = "unix:" + at.address
	}
	return grpc.NewClient(target,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithNoProxy(),
		grpc.WithDisableServiceConfig(),
		grpc.WithIdleTimeout(0),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: bootPollFirst, Multiplier: 1.25, MaxDelay: bootPollMax},
			MinConnectTimeout: timeout,
		}),
	)
}

// boot reports whether the worker came to serve before ctx ended.
func (p *prober) boot(ctx context.Context, client grpc_health_v1.HealthClient) bool {
	for pause := bootPollFirst; ; pause = min(pause*5/4, bootPollMax) {
		v := p.look(ctx, client)
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
func (p *prober) look(ctx context.Context, client grpc_health_v1.HealthClient) verdict {
	dialer := net.Dialer{Timeout: p.timeout}
	conn, err := dialer.DialContext(ctx, p.place.network, p.place.address)
	if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist) {
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
	if err != nil {
		return verdict{finding: failed, reason: err.Error()}
	}
	v := p.ask(ctx, client)
	v.owners = owners
	return v
}

// watch asks a worker that has been ready whenever it is due, until ctx ends or
// nobody listens any more; it reports the latter.
func (p *prober) watch(ctx context.Context, client grpc_health_v1.HealthClient) (deserted bool) {
	last := verdict{finding: serving, asked: time.Now(), answered: true}
	for sleep(ctx, min(p.interval, tickEvery)) {
		if p.deserted.Swap(false) {
			return true
		}
		if p.paused.Load() || time.Since(last.asked) < p.pause(last, p.activity()) {
			continue
		}
		last = p.ask(ctx, client)
		if !p.tell(ctx, last) {
			return false
		}
	}
	return false
}

// pause is the least time between the last question and the next: short for a
// worker that is out or doubtful. Another one is asked when no call has finished
// for an interval (R6).
func (p *prober) pause(last verdict, work Work) time.Duration {
	soon := min(p.interval, sickPoll)
	switch {
	case work.Doubtful && !last.doubted:
		return 0
	case work.Doubtful || !last.answered && last.finding != busy || last.finding == notServing || last.finding == failed:
		return soon
	case work.Answered.After(last.asked):
		return work.Answered.Add(p.interval).Sub(last.asked)
	default:
		return p.interval
	}
}

// ask makes one health check.
func (p *prober) ask(ctx context.Context, client grpc_health_v1.HealthClient) verdict {
	asked, before, timeout := time.Now(), p.activity(), p.timeout
	if before.Doubtful {
		timeout = min(timeout, doubtTimeout)
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	answer, err := client.Check(limited, &grpc_health_v1.HealthCheckRequest{})
	after := p.activity()
	working := before.InFlight > 0 || after.InFlight > 0 || after.Answered.After(before.Answered)
	v := judge(answer.GetStatus(), err, working)
	v.asked, v.doubted = asked, before.Doubtful
	return v
}

// judge reads the answer to a health check of a worker that is, or is not,
// working on calls.
//
// Without a statement about service "" (no health service: UNIMPLEMENTED; the
// service unknown to it: NOT_FOUND, SERVICE_UNKNOWN; asked for credentials) a
// worker that answers is good. Health runs in the worker's own pool, so while
// calls are in flight a refusal or silence is saturation, not sickness (R6).
func judge(answer grpc_health_v1.HealthCheckResponse_ServingStatus, err error, working bool) verdict {
	if err == nil {
		if answer == grpc_health_v1.HealthCheckResponse_NOT_SERVING {
			return verdict{finding: notServing, answered: true, reason: "health service says NOT_SERVING"}
		}
		return verdict{finding: serving, answered: true}
	}
	v := verdict{finding: failed, answered: true, reason: err.Error()}
	switch status.Code(err) {
	case codes.Unimplemented, codes.NotFound, codes.Unauthenticated, codes.PermissionDenied:
		return verdict{finding: serving, answered: true}
	case codes.Unavailable, codes.DeadlineExceeded:
		// Both are made on this side when nothing comes from the other.
		v.answered = false
	case codes.ResourceExhausted:
	default:
		return v
	}
	if working {
		v.finding = busy
	}
	return v
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
