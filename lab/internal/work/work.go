// Package work is the worker that comes with the lab: a server of grpc-go whose calls
// sleep, and use CPU, for as long as their request says. So the service times of a
// scenario are drawn by whoever calls, and every arm gets the same.
//
// Serve runs one with health and reflection. Its slots are those of a pool of threads: a call
// holds one until it is done, also when nobody waits for it any more; more calls than slots wait
// without bound, or are refused. SIGUSR1 makes it slow and SIGUSR2 fast again: see Options.
package work

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"

	"github.com/cabrank/cabrank/internal/testkit/alarm"
)

// NameKey is the header in which an answer has the name of its worker.
const NameKey = "x-worker"

// Full is what happens to a call when all slots are taken.
type Full string

// What a full worker does.
const (
	Unlimited Full = "unlimited" // there are no slots: all calls run at once
	Queue     Full = "queue"     // it waits, however many do, until its caller has gone
	Keep      Full = "keep"      // it waits, however many do, and runs in any case: a handler behind a lock
	Refuse    Full = "refuse"    // it is refused with ResourceExhausted
)

// Options say where and how a worker serves.
type Options struct {
	Addr  string // host:port or unix:/path
	Name  string // in every answer
	Slots int    // how many calls run at a time; 0 with Unlimited
	Full  Full
	// MaxAge is how old a connection gets before it is ended, give or take a tenth;
	// calls on it go on. 0 is no limit.
	MaxAge time.Duration
	// SlowBy and SlowTimes are what a call takes longer while the worker is slow:
	// so much more, so many times as long. 0 is the same as 1.
	SlowBy    time.Duration
	SlowTimes float64
}

func (o Options) check() error {
	switch {
	case o.Addr == "":
		return errors.New("where? give an address, host:port or unix:/path")
	case !slices.Contains([]Full{Unlimited, Queue, Keep, Refuse}, o.Full):
		return fmt.Errorf("full %.40q: want %s, %s, %s or %s", string(o.Full), Queue, Keep, Refuse, Unlimited)
	case o.Full != Unlimited && o.Slots < 1:
		return fmt.Errorf("%d slots: want 1 or more, or full %s", o.Slots, Unlimited)
	case o.MaxAge < 0 || o.SlowBy < 0 || o.SlowTimes < 0 || math.IsNaN(o.SlowTimes) || o.SlowTimes > mostTimes:
		return errors.New("the age of connections and what makes it slow must not be below 0, or above 10,000 times")
	}
	return nil
}

// Worker serves.
//
// Life: New, one Serve.
type Worker struct {
	UnimplementedWorkerServer

	options Options
	slots   chan struct{} // nil without
	slow    atomic.Bool
}

// New returns a worker that does not serve yet.
//
// Errors: one line for options that cannot be.
func New(o Options) (*Worker, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	o.SlowTimes = cmp.Or(o.SlowTimes, 1)
	w := &Worker{options: o}
	if o.Full != Unlimited {
		w.slots = make(chan struct{}, o.Slots)
	}
	return w, nil
}

// SetSlow makes it slow, or fast again.
func (w *Worker) SetSlow(slow bool) { w.slow.Store(slow) }

// Serve answers calls until ctx ends; then it takes no new ones and returns when the
// last has ended. ready is called with the address when it listens; it may be nil.
//
// Errors: the address cannot be listened on, or the listener broke.
func (w *Worker) Serve(ctx context.Context, ready func(net.Addr)) error {
	network, address := "tcp", w.options.Addr
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		network, address = "unix", path
	}
	listener, err := new(net.ListenConfig).Listen(ctx, network, address)
	if err != nil {
		return err
	}
	if ready != nil {
		ready(listener.Addr())
	}
	var options []grpc.ServerOption
	if w.options.MaxAge > 0 {
		options = append(options, grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionAge: w.options.MaxAge}))
	}
	server, checks := grpc.NewServer(options...), health.NewServer()
	RegisterWorkerServer(server, w)
	healthpb.RegisterHealthServer(server, checks)
	reflection.Register(server)
	unhook := context.AfterFunc(ctx, func() {
		checks.Shutdown()
		server.GracefulStop()
	})
	defer unhook()
	if err := server.Serve(listener); !errors.Is(err, grpc.ErrServerStopped) {
		return err
	}
	return nil
}

const (
	// longest is how long one call may take: what is longer is an error of the
	// request, and would hold a slot for ever.
	longest   = 10 * time.Minute
	mostTimes = 10_000
	// refusal is what Ruby's server says when no thread is free: cabrank knows it.
	refusal = "No free threads in thread pool"
)

// Work does what the request says.
func (w *Worker) Work(ctx context.Context, r *WorkRequest) (*WorkReply, error) {
	sleep, err := span("sleep_ms", r.GetSleepMs())
	if err != nil {
		return nil, err
	}
	cpu, err := span("cpu_ms", r.GetCpuMs())
	if err != nil {
		return nil, err
	}
	_ = grpc.SetHeader(ctx, metadata.Pairs(NameKey, w.options.Name)) // the call has not been answered
	if err := w.take(ctx); err != nil {
		return nil, err
	}
	defer w.give()
	if w.slow.Load() {
		sleep = w.slower(sleep) + w.options.SlowBy
		cpu = w.slower(cpu)
	}
	burn(cpu)
	if sleep > 0 {
		w.pause(min(sleep, longest)) // to the end: a thread would, too
	}
	return &WorkReply{Message: r.GetMessage(), Worker: w.options.Name}, nil
}

// mostExact is how many calls sleep exactly, each with a descriptor.
const mostExact = 100

// pause sleeps. Where slots are few it does so exactly: the timers of the runtime are half a
// millisecond late on average, which is work that nobody has asked for.
func (w *Worker) pause(d time.Duration) {
	if w.slots != nil && cap(w.slots) <= mostExact {
		if exact, err := alarm.New(); err == nil {
			defer exact.Close()
			if exact.Sleep(d) == nil {
				return
			}
		}
	}
	time.Sleep(d)
}

func (w *Worker) slower(d time.Duration) time.Duration {
	return min(time.Duration(float64(d)*w.options.SlowTimes), longest)
}

// span reads a time of a request.
func span(key string, ms float64) (time.Duration, error) {
	if !(ms >= 0 && ms <= float64(longest/time.Millisecond)) {
		return 0, status.Errorf(codes.InvalidArgument, "%s %v: want 0 to %d", key, ms, longest/time.Millisecond)
	}
	return time.Duration(ms * float64(time.Millisecond)), nil
}

func (w *Worker) take(ctx context.Context) error {
	if w.slots == nil {
		return nil
	}
	select {
	case w.slots <- struct{}{}:
		return nil
	default:
	}
	if w.options.Full == Refuse {
		return status.Error(codes.ResourceExhausted, refusal)
	}
	gone := ctx.Done()
	if w.options.Full == Keep {
		gone = nil
	}
	select {
	case w.slots <- struct{}{}:
		return nil
	case <-gone:
		return status.FromContextError(ctx.Err()).Err()
	}
}

func (w *Worker) give() {
	if w.slots != nil {
		<-w.slots
	}
}
