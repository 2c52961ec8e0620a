package socket

import (
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/broker"
	"github.com/cabrank/cabrank/internal/testkit"
)

// ACK and NACK leave in the order of the requests, however the broker answers.
func TestAnswersInOrder(t *testing.T) {
	c, _, b := dialScripted(t, Options{})
	c.send(callFrame("1", "a", time.Second), callFrame("2", "b", time.Second), callFrame("3", "c", time.Second))
	b.await(t, "call a", "call b", "call c").done("call c", nil)
	b.done("call b", errScripted)
	b.done("call a", nil)
	c.want("ack 1", "nack 2", "ack 3")
	b.answer("c", "3")
	b.answer("a", "1")
	c.want("res 3", "res 1")
}

// A PUB goes out when the SUBs before it are done, so that it comes to its sender.
func TestPubFollowsItsSub(t *testing.T) {
	url, _, b := startScripted(t, Options{})
	c := dial(t, url)
	c.send(subFrame("1", "c"), pubFrame("2", "c", "x"))
	b.await(t, "sub c")
	other := dial(t, url)
	other.send(pubFrame("3", "other", "x")) // waits for nobody
	b.await(t, "sub c", "pub other").done("sub c", nil)
	b.await(t, "sub c", "pub other", "pub c").done("pub c", nil)
	b.done("pub other", nil)
	c.want("ack 1", "ack 2")
	other.want("ack 3")
}

// The broker hears of a topic one step at a time, whatever sockets do meanwhile.
func TestTopicsOneStepAtATime(t *testing.T) {
	url, server, b := startScripted(t, Options{})
	c, d := dial(t, url), dial(t, url)
	c.send(subFrame("1", "c"), unsubFrame("2", "c"), subFrame("3", "c"), unsubFrame("4", "c"))
	b.await(t, "sub c")
	d.send(subFrame("5", "c"))
	waits := func(n int) {
		testkit.Eventually(t, within, "subscriptions to wait for the broker", func() bool {
			server.hub.mu.RLock()
			defer server.hub.mu.RUnlock()
			return len(server.hub.topics[broker.Topic{Name: "c"}].waiting) == n
		})
	}
	waits(3)
	b.done("sub c", nil)
	c.want("ack 1", "ack 2", "ack 3", "ack 4")
	d.want("ack 5")
	d.send(unsubFrame("6", "c")).want("ack 6")
	b.await(t, "sub c", "unsub c")
	d.send(subFrame("7", "c"))
	waits(1)
	b.await(t, "sub c", "unsub c").done("unsub c", nil)
	b.await(t, "sub c", "unsub c", "sub c").done("sub c", nil)
	d.want("ack 7")
}

// Who could not subscribe is no member, has its place back, and may try again.
func TestRefusedSubscription(t *testing.T) {
	c, _, b := dialScripted(t, Options{MaxSubscriptions: 1})
	c.send(subFrame("1", "c"))
	b.await(t, "sub c").done("sub c", errScripted)
	c.want("nack 1")
	c.send(subFrame("3", "d"))
	b.await(t, "sub c", "sub d").done("sub d", errScripted)
	c.want("nack 3")
	c.send(subFrame("2", "c"))
	b.await(t, "sub c", "sub d", "sub c").done("sub c", nil)
	c.want("ack 2")
}

// Calls of a socket that has ended are taken back, its subscriptions too.
func TestEndOfASocket(t *testing.T) {
	url, server, b := start(t, Options{}, noBounds)
	c := dial(t, url)
	c.send(subFrame("1", "c"), callFrame("2", "test.nobody", time.Minute)).want("ack 1", "ack 2")
	c.ws.Close()
	testkit.Eventually(t, within, "nothing to be left", func() bool {
		calls, _ := b.Waiting()
		stats := server.Stats()
		return calls == 0 && stats.Subscriptions == 0 && stats.Sockets == 0
	})
}
