package socket

import (
	"strings"
	"time"

	"github.com/cabrank/cabrank/internal/broker"
)

const (
	// mostPattern and mostStars bound a pattern.
	mostPattern, mostStars = 256, 8

	// mostWork bounds the sum of broker.Work of all patterns of a server, so that an event
	// is compared with them within 0.1 ms in a channel of 20 bytes, and 5 ms in one of
	// 1,024. A publisher waits for that, also at other servers of a Redis. A socket and a
	// source have parts of it, as of memory.
	mostWork = 1024

	// matchedPerSecond is how many bytes a second are compared for all sockets, a tenth of
	// what Redis can do. A source has no more of that than it leaves to others.
	matchedPerSecond = 20_000_000
)

func isLongPattern(glob string) bool {
	return len(glob) > mostPattern || strings.Count(glob, "*") > mostStars
}

// workOf is the part of mostWork that a topic takes.
func workOf(topic broker.Topic) int {
	if !topic.Pattern {
		return 0
	}
	return broker.Work(topic.Name)
}

// awaitMatching waits until an event in a channel with a name of so many bytes may be
// compared with all patterns, or the socket has ended.
func (s *session) awaitMatching(channel int) {
	const again = 10 * time.Millisecond
	server := s.server
	for {
		compared := float64(server.compare.used.Load()) * float64(channel)
		if compared == 0 || server.matching.allows(time.Now(), s.source.debtOf(&s.source.matching), min(compared, matchedPerSecond/4)) {
			return
		}
		if !s.pause(again) {
			return
		}
	}
}
