// Package oneslot tries a balancer on workers that run one call at a time, the
// kind that cannot hide a bad choice: calls that are drawn in advance, a worker
// and callers for them, and what came of it beside a perfect queue.
//
// Start from Draw, Trial and Run; Judge puts together what callers and workers
// have seen. Both tell the time by the machine's monotonic clock, so that their
// records can be compared across processes.
package oneslot

import (
	"context"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/cabrank/cabrank/internal/ranksim"
	"github.com/cabrank/cabrank/internal/testkit/alarm"
)

// Call is one call of a trial.
type Call struct {
	At      time.Duration // when it is due, since the beginning of the trial
	Service time.Duration // how long a worker needs for it

	Method   string        // "/package.Service/Method"; empty is Method
	Request  proto.Message // nil tells Service; what else a worker understands is for it to say
	Metadata []string      // keys and values, in turn
	Leave    time.Duration // after which its caller leaves; 0 for never
}

// MeanService is the mean service time of the calls that Draw makes.
const MeanService = 20 * time.Millisecond

// Draw makes calls of mixed length. The gaps between them are exponential, as those of
// many callers that know nothing of each other. The same seed makes the same calls.
func Draw(seed uint64, calls int, gap time.Duration) []Call {
	random := rand.New(rand.NewPCG(seed, 0))
	all, at := make([]Call, calls), 0.0
	for i := range all {
		at += random.ExpFloat64() * float64(gap)
		all[i] = Call{At: time.Duration(at), Service: ranksim.Mixed().Draw(random)}
	}
	return all
}

// Trial is callers who do not wait for each other: every call is made when it
// is due, whatever became of those before (an open loop).
type Trial struct {
	Addr    string
	Calls   []Call        // in the order of At
	Timeout time.Duration // deadline of each call since it is due, told as grpc-timeout; 0 for none
}

// Outcome is what a caller tells about one call. Moments are of the monotonic clock.
type Outcome struct {
	Due, Sent, Ended time.Duration // when it was to be made, was made, and had ended
	Code             codes.Code
	Message          string
	Worker           string // who answered, if the call went well
	Trailer          metadata.MD
}

// Took is the latency as a caller feels it: from the moment it was due.
func (o Outcome) Took() time.Duration { return o.Ended - o.Due }

const (
	connections = 4
	// finish bounds how long calls without a deadline may take after the last was due.
	finish = time.Minute
)

// now is the machine's monotonic clock: the same in every process.
func now() time.Duration {
	var t unix.Timespec
	unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) //nolint:errcheck // this clock is always there
	return time.Duration(t.Nano())
}

// pause sleeps exactly: by the runtime's timers a call would take a millisecond more.
func pause(d time.Duration) {
	a, err := alarm.New()
	if err == nil {
		defer a.Close()
		err = a.Sleep(d)
	}
	if err != nil {
		time.Sleep(d)
	}
}

// Run makes all calls and returns how each ended, in their order. When ctx ends, so do the calls.
//
// Errors: of the address.
func (t Trial) Run(ctx context.Context) ([]Outcome, error) {
	var conns [connections]*grpc.ClientConn
	defer func() {
		for _, conn := range conns {
			if conn != nil {
				conn.Close()
			}
		}
	}()
	for i := range conns {
		conn, err := grpc.NewClient(t.Addr, grpc.WithNoProxy(), grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return nil, err
		}
		conn.Connect()
		conns[i] = conn
	}
	ctx, cancel := context.WithTimeout(ctx, finish+t.Calls[len(t.Calls)-1].At)
	defer cancel()
	outcomes := make([]Outcome, len(t.Calls))
	var calls sync.WaitGroup
	begin := now()
	for i, c := range t.Calls {
		outcomes[i].Due = begin + c.At
		pause(outcomes[i].Due - now())
		calls.Go(func() { t.call(ctx, conns[i%connections], i, &outcomes[i]) })
	}
	calls.Wait()
	return outcomes, nil
}

func (t Trial) call(ctx context.Context, conn *grpc.ClientConn, index int, o *Outcome) {
	c := t.Calls[index]
	o.Sent = now()
	if t.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.Due+t.Timeout-o.Sent)
		defer cancel()
	}
	if c.Leave > 0 {
		var leave context.CancelFunc
		ctx, leave = context.WithCancel(ctx)
		defer time.AfterFunc(c.Leave, leave).Stop()
		defer leave()
	}
	ctx = metadata.AppendToOutgoingContext(ctx, append([]string{callKey, strconv.Itoa(index)}, c.Metadata...)...)
	method := c.Method
	if method == "" {
		method = Method
	}
	request := c.Request
	if request == nil {
		request = durationpb.New(c.Service)
	}
	var header metadata.MD
	err := conn.Invoke(ctx, method, request, &emptypb.Empty{}, grpc.Header(&header), grpc.Trailer(&o.Trailer), grpc.WaitForReady(true))
	o.Ended = now()
	o.Code, o.Message = status.Code(err), status.Convert(err).Message()
	if names := header.Get("x-worker"); len(names) == 1 {
		o.Worker = names[0]
	}
}
