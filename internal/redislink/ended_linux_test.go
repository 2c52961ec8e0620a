package redislink

import (
	"context"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/internal/testkit/fakeredis"
)

// What came before the end of a connection does not hide it: a goodbye, or the last record
// of TLS.
func TestEndBehindAGoodbye(t *testing.T) {
	testkit.CheckLeaks(t)
	on := testkit.Listen(t)
	defer on.Close()
	here := testkit.Dial(t, on.Addr().String())
	defer here.Close()
	there, err := on.Accept()
	testkit.Must(t, err)
	raw, err := here.(*net.TCPConn).SyscallConn()
	testkit.Must(t, err)
	_, err = there.Write([]byte("-ERR idle for too long\r\n"))
	testkit.Must(t, err)
	testkit.Want(t, !hasEnded(raw), "it has not ended")
	there.Close()
	testkit.Eventually(t, time.Minute, "the end to be seen", func() bool { return hasEnded(raw) })
}

// What is asked behind the end of a connection goes over another one.
func TestEndedConnectionIsNotWrittenTo(t *testing.T) {
	testkit.CheckLeaks(t)
	server := fakeredis.Start(t, func(_ *fakeredis.Conn, args []string) string { return fakeredis.Default(args) })
	c, err := Open(server.Address, slog.New(slog.DiscardHandler))
	testkit.Must(t, err)
	defer c.Close()
	cut := func() {
		server.Cut()
		testkit.Eventually(t, time.Minute, "the end to be seen", func() bool {
			c.mu.Lock()
			defer c.mu.Unlock()
			for held := range c.conns {
				if !hasEnded(held.raw) {
					return false
				}
			}
			return true
		})
	}
	for range 20 {
		testkit.Must(t, c.Do(within(t), c.B().Ping().Build()).Error())
		cut()
		for _, answer := range c.DoMulti(within(t), c.B().Ping().Build(), c.B().Ping().Build()) {
			testkit.Must(t, answer.Error())
		}
		cut()
	}
}

// within is a context as all have who ask Redis: with a deadline.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), AnswerWithin)
	t.Cleanup(cancel)
	return ctx
}
