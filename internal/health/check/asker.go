// Package check asks an endpoint how it is, and which services it has.
//
// Start from Open, Asker.Due and Asker.Ask. How it goes:
//
//  1. An endpoint is asked by the gRPC health protocol, for service "", on a
//     connection that carries no calls: it takes no slot and waits behind none.
//  2. It is asked when no call there has finished for an interval, at once when
//     it is overdue, and every second while it is out or overdue (R6).
//
// It draws no conclusions: what an answer is worth is for the judge to say (package
// health).
package check

import (
	"cmp"
	"context"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/cabrank/cabrank/internal/health"
)

const (
	// sickPoll is how often an endpoint is asked that is out, that has missed a
	// question or is overdue, unless the interval is shorter.
	sickPoll = time.Second
	// overdueTimeout bounds the question to an overdue endpoint, unless the timeout
	// is shorter: calls go there until it is known.
	overdueTimeout = time.Second
	// firstRedial is the pause before the second attempt to connect.
	firstRedial = 20 * time.Millisecond
)

// Options say whom to ask, and how.
type Options struct {
	// Network and Address are as net.Dial takes them: "tcp" or "unix".
	Network, Address string
	// Dial connects to endpoints of any other network; nil: there are none.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Interval is the silence after which an endpoint is asked, more than 0.
	Interval time.Duration
	// Timeout bounds one question, connecting included, more than 0.
	Timeout time.Duration
	// Redial bounds the pause between attempts to connect, which begins at 20 ms.
	Redial time.Duration
	// Work tells what is known now; nil: nothing ever is. It is called from the goroutines
	// of Due and Ask and must return at once.
	Work func() health.Work
}

// Asker asks one endpoint.
//
// Concurrency: every method may be called from any goroutine.
type Asker struct {
	options Options
	rhythm  atomic.Pointer[rhythm]
	conn    *grpc.ClientConn
	client  grpc_health_v1.HealthClient
	foreign foreign
}

// rhythm is what Configure changes.
type rhythm struct{ interval, timeout time.Duration }

// Open makes an Asker; Close ends it. It does not connect: the first question
// does. The error is one of options that make no sense.
//
// The connection takes, whatever the environment says, no proxy: gruf-relay sent
// its own checks to HTTPS_PROXY.
func Open(o Options) (*Asker, error) {
	conn, err := connection(&o, o.Redial, o.Timeout)
	if err != nil {
		return nil, err
	}
	if o.Work == nil {
		o.Work = func() health.Work { return health.Work{} }
	}
	a := &Asker{options: o, conn: conn, client: grpc_health_v1.NewHealthClient(conn)}
	a.Configure(o.Interval, o.Timeout)
	return a, nil
}

// isDialed reports whether an endpoint is connected to by Options.Dial.
func (o *Options) isDialed() bool { return o.Network != "tcp" && o.Network != "unix" }

// connection makes one for questions. It connects when the first one is put.
func connection(o *Options, redial, timeout time.Duration) (*grpc.ClientConn, error) {
	target, options := "passthrough:///"+o.Address, []grpc.DialOption(nil)
	switch {
	case o.Network == "unix":
		target = "unix:" + o.Address
	case o.isDialed():
		at, host, _ := strings.Cut(o.Address, "/")
		options = []grpc.DialOption{
			grpc.WithAuthority(cmp.Or(host, at)),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return o.Dial(ctx, o.Network, o.Address) }),
		}
	}
	return grpc.NewClient(target, append(options,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithNoProxy(),
		grpc.WithDisableServiceConfig(),
		grpc.WithIdleTimeout(0),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: firstRedial, Multiplier: 1.25, Jitter: 0.2, MaxDelay: max(redial, firstRedial)},
			MinConnectTimeout: timeout,
		}))...,
	)
}

// Configure puts others in place of Options.Interval and Options.Timeout, from the
// next question on.
func (a *Asker) Configure(interval, timeout time.Duration) {
	a.rhythm.Store(&rhythm{interval, timeout})
}

// Conn is the connection on which questions go, for calls of the same kind that
// take no slot, too. It belongs to the Asker.
func (a *Asker) Conn() *grpc.ClientConn { return a.conn }

// Close ends the connection and the questions under way.
func (a *Asker) Close() { _ = a.conn.Close() } // nothing is lost with it

// Due reports whether the next question is due after the last, whose answer is
// given; after the zero Answer it is. An urgent one is due after a second.
func (a *Asker) Due(last health.Answer, urgent bool) bool {
	return time.Since(last.Asked) >= a.pause(last, urgent, a.options.Work())
}

// pause is the least time between the last question and the next: short for an
// endpoint that is out or overdue. Another one is asked when no call has
// finished for an interval (R6).
func (a *Asker) pause(last health.Answer, urgent bool, work health.Work) time.Duration {
	interval := a.rhythm.Load().interval
	switch {
	case work.Overdue && !last.Overdue:
		return 0
	case work.Overdue || urgent || !last.IsGood() && !last.IsBusy():
		return min(interval, sickPoll)
	case work.Answered.After(last.Asked):
		return work.Answered.Add(interval).Sub(last.Asked)
	default:
		return interval
	}
}

// Ask puts the question and waits for the answer, no longer than the timeout.
func (a *Asker) Ask(ctx context.Context) health.Answer {
	asked, before, timeout := time.Now(), a.options.Work(), a.rhythm.Load().timeout
	if before.Overdue {
		timeout = min(timeout, overdueTimeout)
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	answer, err := a.client.Check(limited, &grpc_health_v1.HealthCheckRequest{})
	after := a.options.Work()
	said, reason := read(answer.GetStatus(), err)
	if said == health.Nothing && broken(reason) {
		reason = cmp.Or(a.foreign.reason(limited, &a.options), reason)
	}
	working := before.InFlight > 0 || after.InFlight > 0 || after.Answered.After(before.Answered)
	return health.Answer{Said: said, Reason: reason, Asked: asked, Working: working, Overdue: before.Overdue}
}
