package socket

import (
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

// What the broker says to a socket that has left takes nothing of the budget for ever.
func TestLateAnswersGiveBack(t *testing.T) {
	testkit.CheckLeaks(t)
	url, server, b := startScripted(t, Options{})
	c := dial(t, url)
	c.send(callFrame("1", "a", time.Minute), callFrame("2", "b", time.Minute), pubFrame("3", "c", "x"))
	b.await(t, "call a", "call b", "pub c")
	c.ws.Close()
	testkit.Eventually(t, within, "the socket to end", func() bool { return server.Stats().Sockets == 0 })
	b.done("call b", nil)
	b.answer("b", "1")
	b.done("call a", errScripted)
	b.done("pub c", nil)
	if used := server.Stats().BufferedBytes; used != 0 {
		t.Errorf("%d bytes of the budget are left behind", used)
	}
}
