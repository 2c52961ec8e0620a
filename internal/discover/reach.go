package discover

import (
	"context"
	"math/rand/v2"
	"strings"
	"time"

	"google.golang.org/grpc/connectivity"
)

const (
	// lostFor is how long the connection to an endpoint that could be reached may
	// be away before calls are: within a second, with the time between two looks
	// (R6).
	lostFor = 500 * time.Millisecond
	// minPause and redialPause bound the pause before a connection that has ended
	// soon is made anew; it doubles, with a fifth of jitter. One that has stood for
	// longer than steady is made anew at once.
	minPause    = 100 * time.Millisecond
	redialPause = 400 * time.Millisecond
	steady      = 5 * time.Second
	// maxPause bounds the pause between attempts that fail.
	maxPause = 5 * time.Second
)

// contact is what the connection to an endpoint tells.
type contact struct {
	event  event
	reason string // of failed
}

// event is what has become of a connection.
type event uint8

const (
	stands event = iota // also: anew
	lost                // it stood and has ended; it is being made anew
	gone                // it cannot be had
)

// line is grpc.ClientConn, as far as its connection is held.
type line interface {
	Connect()
	GetState() connectivity.State
	WaitForStateChange(ctx context.Context, last connectivity.State) bool
}

// reacher holds the connection on which an endpoint is asked for its health. Its
// end tells first that an endpoint has gone, or is about to: a server that stops
// gracefully takes no new connections and says GOAWAY on old ones. A connection
// on which nothing is said would not do, servers wait for its first byte before
// they end (decision 018).
type reacher struct {
	lane     asker
	contacts chan<- contact
}

// run tells what becomes of the connection until ctx ends.
func (r *reacher) run(ctx context.Context) {
	line, pause := r.lane.Line(), minPause
	var since time.Time // it stands; zero: it does not
	for {
		state := line.GetState()
		switch state {
		case connectivity.Ready:
			since = time.Now()
			r.tell(ctx, contact{event: stands})
		case connectivity.TransientFailure:
			since = time.Time{}
			// The question fails at once, and says why.
			r.tell(ctx, contact{gone, brief(r.lane.Ask(ctx).Reason)})
		case connectivity.Idle:
			if !since.IsZero() {
				r.tell(ctx, contact{event: lost})
				pause = rest(ctx, pause, time.Since(since))
				since = time.Time{}
			}
			line.Connect()
		case connectivity.Connecting, connectivity.Shutdown:
		}
		if !line.WaitForStateChange(ctx, state) {
			return
		}
	}
}

// rest waits before a connection is made anew that has stood for so long, and
// returns how long to wait the next time.
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

// brief leaves out of the text of an error the layers around what happened.
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
