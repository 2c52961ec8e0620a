package socket

import (
	"strconv"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

// Names of subscriptions count, beyond a few, which are part of what a socket takes: who has
// most is refused, others are not, and what ends gives its memory back.
func TestSubscriptionsCount(t *testing.T) {
	url, server, _ := start(t, Options{BufferTotal: 4 << 20}, noBounds)
	bad, good, few := dial(t, url), dial(t, url), dial(t, url)
	few.send(subFrame("1", "user:1"), subFrame("2", "user:2")).want("ack 1", "ack 2")
	testkit.Eventually(t, within, "the answers to be written", func() bool { return server.budget.used.Load() == 0 })
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
	good.send(subFrame("1", name(0)), subFrame("2", "mine")).want("ack 1", "ack 2")
	bad.send(unsubFrame("1", name(0)), pubFrame("2", name(0), "1")).want("ack 1", "ack 2")
	good.want("evnt 2")
	bad.ws.Close()
	// What the other one has paid for and this one has, too, is this one's now.
	const left = 2*memberBytes + 2*topicBytes + 2*(1001+4) - freeNames
	testkit.Eventually(t, within, "what the socket had to be given back", func() bool { return server.budget.used.Load() == left })
}

// Answers that wait behind a late one repeat long names only where there is room for them.
func TestRepeatedNamesCount(t *testing.T) {
	const total = 1 << 20
	c, server, b := dialScripted(t, Options{BufferTotal: total})
	c.send(pubFrame("1", "late", "x"))
	b.await(t, "pub late")
	const refused = 250
	long := strings.ReplaceAll(subFrame("2", "name"), "name", strings.Repeat("<", 3900)) // each is six bytes in the answer
	for range refused {
		c.send(long)
	}
	session := server.sessions()[0]
	testkit.Eventually(t, within, "all to be refused", func() bool {
		session.mu.Lock()
		defer session.mu.Unlock()
		return len(session.promises) == refused+1 && session.promises[refused].known
	})
	used := server.Stats().BufferedBytes
	testkit.Want(t, used <= total, "%d bytes wait, of %d", used, total)
	b.done("pub late", nil)
	c.want("ack 1")
	for range refused {
		c.want("nack 2")
	}
}
