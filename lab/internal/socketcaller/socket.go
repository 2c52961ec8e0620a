package socketcaller

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"google.golang.org/grpc/codes"

	"github.com/cabrank/cabrank/client"
	"github.com/cabrank/cabrank/lab/internal/httpcaller"
	"github.com/cabrank/cabrank/lab/internal/traffic"
)

const (
	// MostSockets is the most that a load opens.
	MostSockets = 10_000
	// atATime is how many handshakes are under way together.
	atATime = 32
)

// open opens n sockets.
//
// Errors: the first; then none is left open.
func open(ctx context.Context, url string, n int, o client.Options) ([]*client.Client, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	all := make([]*client.Client, n)
	var opening sync.WaitGroup
	for first := range min(atATime, n) {
		opening.Go(func() {
			for i := first; i < n && ctx.Err() == nil; i += atATime {
				c, err := client.Dial(ctx, url, o)
				if err != nil {
					cancel(err)
					return
				}
				all[i] = c
			}
		})
	}
	opening.Wait()
	if ctx.Err() != nil {
		closeAll(all)
		return nil, context.Cause(ctx)
	}
	return all, nil
}

// closeAll closes sockets, some at a time: each may wait for its server.
func closeAll(all []*client.Client) {
	var closing sync.WaitGroup
	for first := range min(atATime, len(all)) {
		closing.Go(func() {
			for i := first; i < len(all); i += atATime {
				if all[i] != nil {
					all[i].Close()
				}
			}
		})
	}
	closing.Wait()
}

// failed is the answer to a request that has ended with an error. Texts have no name and
// no time in them, which would make each of them another one.
func failed(err error) traffic.Answer {
	code, text := codes.Unknown, err.Error()
	refused, isRefused := errors.AsType[*client.RefusedError](err)
	function, isFunction := errors.AsType[*client.FunctionError](err)
	lost, isLost := errors.AsType[*client.DisconnectedError](err)
	expired, isExpired := errors.AsType[*client.ExpiredError](err)
	switch {
	case isRefused:
		text = fmt.Sprintf("NACK %d %s", refused.Code, refused.Message)
		if code = httpcaller.Code(refused.Code); code == codes.Unknown || code == codes.Internal {
			code = codes.Unavailable // what a server of sockets says with 500
		}
	case isFunction:
		text = "RES with an error: " + function.Message
	case isLost:
		code, text = codes.Unavailable, "lost: the connection ended: "+lost.Cause.Error()
	case isExpired && expired.Cause != nil:
		code, text = codes.DeadlineExceeded, "EXP: there was no connection: "+expired.Cause.Error()
	case isExpired && expired.Taken:
		code, text = codes.DeadlineExceeded, "EXP: no result in time"
	case isExpired:
		code, text = codes.DeadlineExceeded, "EXP: not acknowledged in time"
	case errors.Is(err, context.Canceled):
		code, text = codes.Canceled, "given up at the end of the load"
	}
	return traffic.Answer{Code: uint32(code), Message: text}
}

// opened is how many connections were opened so far.
func opened(all []*client.Client) (n int64) {
	for _, c := range all {
		n += c.Stats().Connections
	}
	return n
}
