package socket

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

func patternFrame(id, glob string) string {
	return frameText(Sub, id, map[string]any{"channel": glob, "pattern": true})
}

// Patterns are short, have few stars, and together take little time to be compared: who has
// most of them is refused, others are not, and what ends gives its part back.
func TestPatternsAreBounded(t *testing.T) {
	url, server, _ := start(t, Options{}, noBounds)
	bad, good := dial(t, url), dial(t, url)
	bad.send(patternFrame("1", "*"+strings.Repeat("a", 511)+"001*"), patternFrame("2", strings.Repeat("a*", 9)), patternFrame("3", strings.Repeat("a*", 8)))
	bad.want("nack 1", "nack 2", "ack 3")
	taken := 0
	for n := range 20 {
		bad.send(patternFrame("4", fmt.Sprintf("*%s%03d*", strings.Repeat("a", 240), n)))
		if bad.next().kind == Ack {
			taken++
		}
	}
	testkit.Want(t, taken == 2, "one socket has %d patterns that take long, want 2: half of %d", taken, mostWork)
	for n := range 100 {
		good.send(patternFrame("1", "user:"+strconv.Itoa(n)+":*"), patternFrame("2", "*:typing:"+strconv.Itoa(n))).want("ack 1", "ack 2")
	}
	good.send(pubFrame("1", "user:1:typing", "x"), pubFrame("2", strings.Repeat("a", 1000), "x")).want("evnt 1", "ack 1", "ack 2")
	bad.ws.Close()
	good.ws.Close()
	testkit.Eventually(t, within, "the work to be given back", func() bool { return server.compare.used.Load() == 0 })
}

// Who publishes waits for its part of the time in which events are compared.
func TestPublishingWaitsForMatching(t *testing.T) {
	url, server, b := startScripted(t, Options{})
	rate := server.matching
	set := func(perSecond float64) {
		rate.mu.Lock()
		defer rate.mu.Unlock()
		rate.perSecond, rate.left = perSecond, perSecond
	}
	c := dial(t, url)
	c.send(pubFrame("1", "free", "x"))
	b.await(t, "pub free")
	set(0)
	server.compare.used.Add(100)
	defer server.compare.used.Add(-100)
	c.send(pubFrame("2", "dear", "x"))
	testkit.Eventually(t, within, "the socket to wait", func() bool { return server.sessions()[0].notReading.Load() })
	b.await(t, "pub free")
	set(matchedPerSecond)
	b.await(t, "pub free", "pub dear")
	b.leave()
}
