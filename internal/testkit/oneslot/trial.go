package oneslot

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/cabrank/cabrank/internal/testkit/alarm"
)

// Trial is callers who do not wait for each other: every call is made when it
// is due, whatever became of those before (an open loop).
type Trial struct {
	Addr    string
	Conns   int           // connections, used in turn
	Calls   []Call        // in the order of At
	Timeout time.Duration // deadline of each call since it is due, told as grpc-timeout; 0 for none
}

// Outcome is what a caller tells about one call. Moments are of Now.
type Outcome struct {
	Due     time.Duration `json:"due"`  // when it was to be made
	Sent    time.Duration `json:"sent"` // when it was made
	Ended   time.Duration `json:"ended"`
	Code    codes.Code    `json:"code"`
	Message string        `json:"message,omitempty"`
	Worker  string        `json:"worker,omitempty"` // who answered, if the call went well

	Header, Trailer metadata.MD `json:"-"`
}

// Took is the latency as a caller feels it: from the moment it was due.
func (o Outcome) Took() time.Duration { return o.Ended - o.Due }

// lead is the time between the last preparation and the first call.
const lead = 50 * time.Millisecond

// finish bounds how long calls without a deadline may take after the last one
// was due.
const finish = time.Minute

// askAgain is the time between two questions for health.
const askAgain = 20 * time.Millisecond

// Run makes all calls and returns how each ended, in their order. An error is
// of the connections, before the first call. When ctx ends, so do the calls.
func (t Trial) Run(ctx context.Context) ([]Outcome, error) {
	conns, err := t.connect(ctx)
	defer func() {
		for _, conn := range conns {
			conn.Close()
		}
	}()
	if err != nil {
		return nil, err
	}
	last := lead + finish
	if n := len(t.Calls); n > 0 {
		last += t.Calls[n-1].At
	}
	ctx, cancel := context.WithTimeout(ctx, last)
	defer cancel()
	return t.run(ctx, conns)
}

// run makes each call when it is due.
func (t Trial) run(ctx context.Context, conns []*grpc.ClientConn) ([]Outcome, error) {
	pace, err := alarm.New()
	if err != nil {
		return nil, err
	}
	defer pace.Close()
	outcomes := make([]Outcome, len(t.Calls))
	begin := Now() + lead
	var calls sync.WaitGroup
	defer calls.Wait()
	for i, c := range t.Calls {
		outcomes[i].Due = begin + c.At
		if err := pace.Wait(outcomes[i].Due - Now()); err != nil {
			return nil, err
		}
		calls.Go(func() { t.call(ctx, conns[i%len(conns)], i, &outcomes[i]) })
	}
	return outcomes, nil
}

// connect asks for health on each connection until all is well: that takes no
// slot.
func (t Trial) connect(ctx context.Context) (conns []*grpc.ClientConn, err error) {
	for i := range t.Conns {
		conn, err := grpc.NewClient(t.Addr, grpc.WithNoProxy(), grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return conns, err
		}
		conns = append(conns, conn)
		if err := open(ctx, conn); err != nil {
			return conns, fmt.Errorf("connection %d: %w", i+1, err)
		}
	}
	return conns, nil
}

// sleepUntil returns at a moment of Now.
func sleepUntil(at time.Duration) error {
	a, err := alarm.New()
	if err != nil {
		return err
	}
	defer a.Close()
	return a.Wait(at - Now())
}

func open(ctx context.Context, conn *grpc.ClientConn) error {
	ctx, cancel := context.WithTimeout(ctx, finish)
	defer cancel()
	for {
		reply, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{}, grpc.WaitForReady(true))
		if err != nil || reply.GetStatus() == healthpb.HealthCheckResponse_SERVING {
			return err
		}
		if err := sleepUntil(Now() + askAgain); err != nil {
			return err
		}
	}
}

func (t Trial) call(ctx context.Context, conn *grpc.ClientConn, index int, o *Outcome) {
	c := t.Calls[index]
	o.Sent = Now()
	if t.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.Due+t.Timeout-o.Sent)
		defer cancel()
	}
	if c.Leave > 0 {
		var leave context.CancelFunc
		ctx, leave = context.WithCancel(ctx)
		timer := time.AfterFunc(c.Leave, leave)
		defer timer.Stop()
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
	err := conn.Invoke(ctx, method, request, &emptypb.Empty{}, grpc.Header(&o.Header), grpc.Trailer(&o.Trailer))
	o.Ended = Now()
	o.Code, o.Message = status.Code(err), status.Convert(err).Message()
	if names := o.Header.Get("x-worker"); len(names) == 1 {
		o.Worker = names[0]
	}
}
