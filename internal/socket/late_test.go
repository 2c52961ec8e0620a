package socket

import (
	"fmt"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/cabrank/cabrank/internal/broker"
	"github.com/cabrank/cabrank/internal/testkit"
)

// What the broker says to a socket that has left takes nothing of the budget for ever.
func TestLateAnswersGiveBack(t *testing.T) {
	c, server, b := dialScripted(t, Options{})
	c.send(callFrame("1", "a", time.Minute), callFrame("2", "b", time.Minute), pubFrame("3", "c", "x"))
	b.await(t, "call a", "call b", "pub c")
	c.ws.Close()
	testkit.Eventually(t, within, "the socket to end", func() bool { return server.Stats().Sockets == 0 })
	b.done("call b", nil)
	b.answer("b", "1")
	b.done("call a", errScripted)
	b.done("pub c", nil)
	testkit.Equal(t, server.Stats().BufferedBytes, 0, "bytes of the budget are left behind")
}

// A broker that answers nothing does not hold up the end of sockets that wait for it.
func TestCloseWithABrokerThatIsSilent(t *testing.T) {
	url, server, b := startScripted(t, Options{})
	joining, many := dial(t, url), dial(t, url)
	joining.send(subFrame("1", "c"), pubFrame("2", "c", "x"))
	b.await(t, "sub c")
	for i := range mostPromises + 1 {
		many.send(pubFrame("1", fmt.Sprint(i), "x"))
	}
	testkit.Eventually(t, within, "the last one to wait", func() bool { return server.Stats().Received["pub"] == mostPromises+2 })
	closed := make(chan struct{})
	go func() {
		server.Close()
		close(closed)
	}()
	for _, c := range []*client{joining, many} {
		c.wantClosed(websocket.CloseGoingAway)
		c.ws.Close()
	}
	testkit.Take(t, closed, within, "it waits for the broker")
	b.leave()
}

// The end of a subscription that is noted late takes nothing from one that came after it.
func TestSubscribedAgainBeforeTheEndIsNoted(t *testing.T) {
	c, server, b := dialScripted(t, Options{})
	c.send(subFrame("1", "c"))
	b.await(t, "sub c").done("sub c", nil)
	c.want("ack 1")
	for _, s := range server.sessions() {
		s.mu.Lock()
		s.failed = append(s.failed, broker.Topic{Name: "c"}) // of the subscription before
		s.mu.Unlock()
	}
	c.send(subFrame("2", "d"))
	b.await(t, "sub c", "sub d").done("sub d", nil)
	c.want("ack 2")
	c.send(unsubFrame("3", "c"))
	b.await(t, "sub c", "sub d", "unsub c")
	c.want("ack 3")
}
