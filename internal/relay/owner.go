package relay

import (
	"time"

	"github.com/cabrank/cabrank/internal/h2"
)

// owner has a stream of a caller's connection: a call or an Exchange. Which of them, the
// request's HEADERS decide (callerSide.Accept). It is h2.Stream.Owner from then on.
//
// Concurrency: all methods run under the lock of the shard.
type owner interface {
	requester
	leaver
	// pumpAnswer is told that at least one byte can be written.
	pumpAnswer(now time.Duration)
}

// requester takes the frames that its caller sends.
type requester interface {
	// requestHeaders takes the head of the request, or its trailers.
	requestHeaders(b *h2.Block, end bool, now time.Duration)
	// requestTooLarge takes the place of requestHeaders where the list is above the
	// limit that was announced.
	requestTooLarge(end bool, now time.Duration)
	requestData(p []byte, end bool, now time.Duration)
}

// leaver can be ended early.
type leaver interface {
	// abandoned is told that the caller has gone: its stream, its connection, or it
	// has broken a rule. It closes the stream, if that is open still.
	abandoned(now time.Duration)
	// drained is told that the time of a drain is over. It may still answer within
	// messageTime.
	drained(now time.Duration)
	// cutOff ends it at once. It may write what fits without the caller's reading.
	cutOff(now time.Duration)
}

// ownerOf returns the owner of a stream.
func ownerOf(s *h2.Stream) owner {
	if c, is := s.Owner.(*call); is { // mostly; and cheaper to ask for than the interface
		return c
	}
	return s.Owner.(owner)
}

// owners returns the owners of the open streams of the connection.
func (cc *callerConn) owners() (open []owner) {
	cc.link.Conn.Each(func(s *h2.Stream) { open = append(open, ownerOf(s)) })
	return open
}
