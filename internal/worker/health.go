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
	// sickPoll is how often a worker is asked that was taken out, unless the
	// health interval is shorter.
	sickPoll = time.Second
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
	finding finding
	reason  string // for the log; empty when serving
	owners  []int  // processes that hold the listener; only of the first serving
}

// prober finds out how one life of a worker is doing. run is its only
// goroutine; it ends with its context.
type prober struct {
	group    int
	place    place
	interval time.Duration
	timeout  time.Duration
	activity func() (time.Time, int)
	verdicts chan<- verdict // read by the worker's goroutine

	// paused is set while the process is stopped by a signal: what it does not
	// answer then says nothing about its health.
	paused atomic.Bool
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
	if p.boot(ctx, client) {
		p.watch(ctx, client)
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

// watch asks a worker that is ready once no call has finished for an interval
// (R6), and one that is not more often.
func (p *prober) watch(ctx context.Context, client grpc_health_v1.HealthClient) {
	last := serving
	for {
		pause := p.interval
		if last == notServing || last == failed {
			pause = min(pause, sickPoll)
		}
		if !sleep(ctx, pause) {
			return
		}
		if p.paused.Load() {
			continue
		}
		finished, _ := p.activity()
		if (last == serving || last == busy) && time.Since(finished) < p.interval {
			continue
		}
		v := p.ask(ctx, client)
		if !p.tell(ctx, v) {
			return
		}
		last = v.finding
	}
}

// ask makes one health check.
func (p *prober) ask(ctx context.Context, client grpc_health_v1.HealthClient) verdict {
	finishedBefore, inFlightBefore := p.activity()
	limited, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	answer, err := client.Check(limited, &grpc_health_v1.HealthCheckRequest{})
	finished, inFlight := p.activity()
	working := inFlightBefore > 0 || inFlight > 0 || finished.After(finishedBefore)
	return judge(answer.GetStatus(), err, working)
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
			return verdict{finding: notServing, reason: "health service says NOT_SERVING"}
		}
		return verdict{finding: serving}
	}
	switch status.Code(err) {
	case codes.Unimplemented, codes.NotFound, codes.Unauthenticated, codes.PermissionDenied:
		return verdict{finding: serving}
	case codes.ResourceExhausted, codes.Unavailable, codes.DeadlineExceeded:
		if working {
			return verdict{finding: busy, reason: err.Error()}
		}
	}
	return verdict{finding: failed, reason: err.Error()}
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
