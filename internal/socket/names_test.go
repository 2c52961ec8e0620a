package socket

import (
	"strconv"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

// Names of subscriptions count: who has most is refused, others are not, and what ends
// gives its memory back.
func TestSubscriptionsCount(t *testing.T) {
	testkit.CheckLeaks(t)
	url, server, _ := start(t, Options{BufferTotal: 4 << 20}, noBounds)
	bad, good := dial(t, url), dial(t, url)
	name := func(n int) string { return strconv.Itoa(n) + strings.Repeat("x", 1000) }
	acked, nacked := 0, 0
	for n := range 1000 {
		bad.send(subFrame(strconv.FormatInt(int64(n+1), 16), name(n)))
		switch got := bad.next(); got.kind {
		case Ack:
			acked++
		case Nack:
			nacked++
		default:
			t.Fatalf("got %+v", got)
		}
	}
	used := server.budget.used.Load()
	if acked < 100 || nacked < 100 || used < int64(acked)*1000 || cost(used) > 4<<20 {
		t.Errorf("%d are subscribed and %d refused, with %d bytes", acked, nacked, used)
	}
	good.send(subFrame("1", name(0)), subFrame("2", "mine"))
	good.want("ack 1", "ack 2")
	bad.send(unsubFrame("1", name(0)), pubFrame("2", name(0), "1"))
	bad.want("ack 1", "ack 2")
	good.want("evnt 2")
	bad.ws.Close()
	// What the other one has paid for and this one has, too, is this one's now.
	const left = 2*memberBytes + 2*topicBytes + 2*(1001+4) - freeNames
	testkit.Eventually(t, within, "what the socket had to be given back", func() bool { return server.budget.used.Load() == left })
}

// A few subscriptions are part of what a socket takes, and use nothing of the budget.
func TestFewSubscriptionsAreFree(t *testing.T) {
	url, server, _ := start(t, Options{}, noBounds)
	c := dial(t, url)
	c.send(subFrame("1", "user:1"), subFrame("2", "user:2"))
	c.want("ack 1", "ack 2")
	testkit.Eventually(t, within, "the answers to be written", func() bool { return server.budget.used.Load() == 0 })
}
