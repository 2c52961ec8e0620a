package socket

import (
	"context"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/cabrank/cabrank/internal/testkit"
)

// Who is idle leaves in the first half of the time, who calls when it is answered;
// nobody new comes in.
func TestDrain(t *testing.T) {
	url, server, b := startScripted(t, Options{})
	caller := dial(t, url)
	caller.send(callFrame("1", "a", time.Minute))
	b.await(t, "call a").done("call a", nil)
	caller.want("ack 1")
	var idle []*client
	for range 10 {
		idle = append(idle, dial(t, url))
	}
	testkit.Eventually(t, within, "all sockets", func() bool { return server.Stats().Sockets == 11 })
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
	defer cancel()
	cut := make(chan int, 1)
	go func() { cut <- server.Drain(ctx) }()
	testkit.Eventually(t, within, "the first ones to leave", func() bool { return server.Stats().Sockets < 10 })
	testkit.Want(t, server.Stats().Sockets != 1, "those who are idle have left at once, want them spread over half of the time")
	for _, c := range idle {
		c.wantClosed(websocket.CloseGoingAway)
	}
	testkit.Want(t, ctx.Err() == nil, "those who are idle have left at the end of the time")
	got, _ := knock(t, url, nil)
	testkit.Want(t, got == 503, "a new socket: %d", got)
	caller.send(pubFrame("2", "c", "x"))
	b.await(t, "call a", "pub c").done("pub c", nil)
	b.answer("a", "1")
	caller.want("ack 2", "res 1")
	caller.wantClosed(websocket.CloseGoingAway)
	testkit.Equal(t, <-cut, 0, "calls were cut")
	wantEnded(t, server, "drain", 11)
}

// At the end of the time all leave, and what is cut is counted.
func TestDrainEnds(t *testing.T) {
	url, server, _ := start(t, Options{}, noBounds)
	var callers []*client
	for range 3 {
		c := dial(t, url)
		c.send(callFrame("1", "test.nobody", time.Minute), callFrame("2", "test.nobody", time.Minute)).want("ack 1", "ack 2")
		callers = append(callers, c)
	}
	dial(t, url) // who does not even read its close frame
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	cut := make(chan int, 1)
	go func() { cut <- server.Drain(ctx) }()
	for _, c := range callers {
		c.wantClosed(websocket.CloseGoingAway)
	}
	testkit.Equal(t, <-cut, 6, "calls were cut")
}
