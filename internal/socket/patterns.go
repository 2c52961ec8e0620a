package socket

import (
	"strings"
	"time"

	"github.com/cabrank/cabrank/internal/broker"
)

const (
	// mostPattern and mostStars bound a pattern.
	mostPattern, mostStars = 256, 8

	// mostWork is what all patterns of a server may be (broker.Work), so that an event is
	// compared with them within 0.1 ms in a channel of 20 bytes, and 5 ms in one of 1,024.
	// Whoever publishes waits for that, at other servers of a Redis, too. A socket and a
	// source have their part, as of memory.
	mostWork = 1024

	// matchedPerSecond is how many bytes sockets may have compared in a second, which is a
	// tenth of what Redis can do. Of that a source has no more than it leaves to others.
	matchedPerSecond = 20_000_000
)

func isLongPattern(glob string) bool {
	return len(glob) > mostPattern || strings.Count(glob, "*") > mostStars
}

// workOf is what of mostWork a topic is.
func workOf(topic broker.Topic) int {
	if !topic.Pattern {
		return 0
	}
	return broker.Work(topic.Name)
}

// awaitMatching waits until an event in a channel of so many bytes may be compared with all
// patterns, or the socket has ended.
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
