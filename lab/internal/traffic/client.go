package traffic

import (
	"context"
	"time"
)

// Client makes calls; each of the lab's clients is one.
type Client interface {
	// Call makes one call and returns when it has ended: with its answer, or at
	// its deadline with the code 4, or soon after ctx is cancelled. ctx has no
	// deadline: whoever can do without a timer for each call does.
	// Many calls are under way at a time.
	Call(ctx context.Context, call Call) Answer
}

// Dialer is a Client that counts its connections.
type Dialer interface {
	// Opened returns how many connections were opened so far. It may be called
	// at any time.
	Opened() int64
}

// Counter is a Client that counts what else it sees, such as messages by their kind.
type Counter interface {
	// Counts returns what was counted so far: the same names in the same order each
	// time. It may be called at any time.
	Counts() []Count
}

// Count is how many of something there were.
type Count struct {
	Name string `json:"name"`
	N    int64  `json:"n"`
}

// Call is one call to make.
type Call struct {
	// Number tells calls of a plan apart, over all of its parts; 0 and up. Two
	// runs of an open plan have the same numbers at the same moments.
	Number uint64
	// Due is when the call was to start. It lies a little in the past, or more
	// when the generator is late.
	Due time.Time
	// Deadline is when the caller gives up; zero means never.
	Deadline time.Time
}

// Bound returns a context of the call, which ends at its deadline.
func (c Call) Bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if c.Deadline.IsZero() {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, c.Deadline)
}

// Answer is how a call ended.
type Answer struct {
	// Code is the status of gRPC, 0 for OK.
	Code uint32
	// Message is the text of a failure.
	Message string
	// Worker names who has answered; empty if that is not known.
	Worker string
	// Workers counts answers by worker where one call stands for several; Worker is
	// empty then.
	Workers Shares
	// Sent and Received count the messages of the call and their bytes, as they
	// are before compression and without prefix.
	Sent, Received Volume
	// First is when the first message of a stream of answers came; zero if none
	// did, and for calls with one answer.
	First time.Time
	// Ended is when the answer was there, for a client that had more to do behind
	// it; zero means when Call returned.
	Ended time.Time
}

// Volume is a number of messages.
type Volume struct {
	Messages int64 `json:"messages"`
	Bytes    int64 `json:"bytes"`
}

func (v *Volume) add(other Volume) {
	v.Messages += other.Messages
	v.Bytes += other.Bytes
}
