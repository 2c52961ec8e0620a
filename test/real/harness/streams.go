package harness

import (
	"context"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc/metadata"

	"github.com/cabrank/cabrank/examples/go/workpb"
)

// A ChaosKind is one kind of call, with the name of its method.
type ChaosKind string

// The kinds of calls that the chaos makes.
const (
	IOCall    ChaosKind = "Io"    // unary, must not run twice
	CPUCall   ChaosKind = "Cpu"   // unary, marked idempotent
	CountCall ChaosKind = "Count" // server stream, marked idempotent
	ChatCall  ChaosKind = "Chat"  // bidirectional, must not run twice
)

// Idempotent reports whether the configuration marks calls of the kind so.
func (k ChaosKind) Idempotent() bool { return k == CPUCall || k == CountCall }

// Streams reports whether a call of this kind has more than one message.
func (k ChaosKind) Streams() bool { return k == CountCall || k == ChatCall }

// What calls take: unary ones a random time, streams so many messages with a
// pause before each.
const (
	UnaryLeast     = 5 * time.Millisecond
	UnaryMost      = 35 * time.Millisecond
	StreamMessages = 10
	StreamPause    = 20 * time.Millisecond
	StreamShare    = 10 // one call in so many is a stream
)

// ChaosCall is one call as its caller saw it.
type ChaosCall struct {
	ID       string
	Kind     ChaosKind
	Intended time.Time // when it was due
	Ended    time.Time
	Headed   bool // a response header had come
	Messages int  // that came
	Err      error
}

// Took is how long the call took from its intended start, so that a test that
// is late counts against the result and not for it.
func (c *ChaosCall) Took() time.Duration { return c.Ended.Sub(c.Intended) }

// ErrGarbled is a number of messages that is not the one asked for, or not in order.
var ErrGarbled = errors.New("the stream ended well, and its messages are not those that were asked for")

// CountStream takes a stream of numbers, and counts them in call.
func CountStream(ctx context.Context, client workpb.WorkClient, call *ChaosCall) (metadata.MD, error) {
	stream, err := client.Count(ctx, &workpb.CountRequest{To: StreamMessages, PauseMillis: uint32(StreamPause.Milliseconds())})
	if err != nil {
		return nil, err
	}
	for {
		number, err := stream.Recv()
		if err != nil {
			header, _ := stream.Header() // err says why there is none
			return header, call.Whole(err)
		}
		if call.Messages++; int(number.GetValue()) != call.Messages {
			return nil, ErrGarbled
		}
	}
}

// Whole returns how a stream ended, given what its last Recv said.
func (c *ChaosCall) Whole(err error) error {
	switch {
	case !errors.Is(err, io.EOF):
		return err
	case c.Messages != StreamMessages:
		return ErrGarbled
	default:
		return nil
	}
}
