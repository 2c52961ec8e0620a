package discover

import (
	"context"
	"math/rand/v2"
	"strings"
	"time"

	"google.golang.org/grpc/connectivity"
)

const (
	// lostFor is how long the connection to an endpoint may be lost before the endpoint
	// gets no more calls: within a second, with the time between two looks (R6).
	lostFor = 500 * time.Millisecond
	// minPause and redialPause bound the pause before a connection that has ended
	// soon is made again; it doubles, with a fifth of jitter. A connection that was up for
	// longer than steady is made again at once.
	minPause    = 100 * time.Millisecond
	redialPause = 400 * time.Millisecond
	steady      = 5 * time.Second
	// maxPause bounds the pause between attempts that fail.
	maxPause = 5 * time.Second
)

// contact is a change of the connection to an endpoint.
type contact struct {
	event  event
	reason string // of gone
}

// event is the kind of a change.
type event uint8

const (
	stands event = iota // it is up, or up again
	lost                // it was up and has ended; it is being made again
	gone                // it cannot be made
)

// connection is the part of grpc.ClientConn that keeps a connection.
type connection interface {
	Connect()
	GetState() connectivity.State
	WaitForStateChange(ctx context.Context, last connectivity.State) bool
}

// reacher keeps the connection on which an endpoint is asked for its health. Its end is
// the first sign that an endpoint has gone or is about to go: a server that stops
// gracefully takes no new connections and sends GOAWAY on old ones. A silent connection
// would not do: servers wait for its first byte before they end (decision 018).
type reacher struct {
	asker    asker
	contacts chan<- contact
}

// run reports the changes of the connection until ctx ends.
func (r *reacher) run(ctx context.Context) {
	conn, pause := r.asker.Connection(), minPause
	var since time.Time // when it came up; zero: it is not up
	for {
		state := conn.GetState()
		switch state {
		case connectivity.Ready:
			since = time.Now()
			r.tell(ctx, contact{event: stands})
		case connectivity.TransientFailure:
			since = time.Time{}
			// The question fails at once, with the reason.
			r.tell(ctx, contact{gone, brief(r.asker.Ask(ctx).Reason)})
		case connectivity.Idle:
			if !since.IsZero() {
				r.tell(ctx, contact{event: lost})
				pause = rest(ctx, pause, time.Since(since))
				since = time.Time{}
			}
			conn.Connect()
		case connectivity.Connecting, connectivity.Shutdown:
		}
		if !conn.WaitForStateChange(ctx, state) {
			return
		}
	}
}

// rest waits before a connection is made again that was up for stood, and returns the
// next pause.
func rest(ctx context.Context, pause, stood time.Duration) time.Duration {
	if stood > steady {
		return minPause
	}
	sleep(ctx, jitter(pause))
	return min(2*pause, redialPause)
}

func (r *reacher) tell(ctx context.Context, c contact) {
	select {
	case r.contacts <- c:
	case <-ctx.Done():
	}
}

// brief returns the cause in the text of an error, without the layers around it.
func brief(text string) string {
	if _, cause, found := strings.Cut(text, "Error while dialing: "); found {
		return strings.TrimRight(cause, `"`)
	}
	return text
}

func jitter(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.8 + 0.4*rand.Float64()))
}

// sleep ends with ctx.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
