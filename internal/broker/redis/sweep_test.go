package redis

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cabrank/cabrank/internal/broker"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/internal/testkit/fakeredis"
)

// A Redis with a million keys of others is asked for a few at a time, and comes to the end
// of them.
func TestSweepGoesOn(t *testing.T) {
	testkit.CheckLeaks(t)
	const pages = 50
	var asked, swept atomic.Int64
	server := fakeredis.Start(t, func(_ *fakeredis.Conn, args []string) string {
		switch args[0] {
		case "SCAN":
			asked.Add(1)
			cursor, err := strconv.Atoi(args[1])
			testkit.Want(t, err == nil, "%v", err)
			if cursor++; cursor < pages {
				return fmt.Sprintf("*2\r\n$%d\r\n%d\r\n*0\r\n", len(strconv.Itoa(cursor)), cursor)
			}
			return "*2\r\n$1\r\n0\r\n*2\r\n+juggler:calls:{u}\r\n+juggler:other:{u}\r\n"
		case "LRANGE":
			testkit.Want(t, args[1] == "juggler:calls:{u}", "swept %s", args[1])
			swept.Add(1)
		}
		return fakeredis.Default(args)
	})
	b, err := Open(Options{Address: server.Address, Log: slog.New(slog.DiscardHandler), Sweep: time.Hour})
	testkit.Must(t, err)
	defer b.Close()
	from := map[string]uint64{}
	for i, want := range []struct{ asked, swept int64 }{{20, 0}, {20, 0}, {10, 1}, {20, 1}} {
		asked.Store(0)
		from = b.sweep(t.Context(), from)
		testkit.Want(t, asked.Load() == want.asked && swept.Load() == want.swept,
			"sweep %d: asked %d times, swept %d", i, asked.Load(), swept.Load())
	}
}

// A caller may go while its call is about to be sent: both look at one state.
func TestCallerGoesWhileItsCallIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pending{calls: map[string]*waiter{}, left: func(*waiter) { t.Error("Redis is told of a call that it does not have") }}
		p.over = func(w *waiter) { go w.take() } // ends at once
		ctx, cancel := context.WithCancel(context.Background())
		p.add(ctx, "1", broker.Call{Timeout: time.Minute, Accepted: func(error) {}, Answered: func(json.RawMessage, error) {}})
		cancel()
		synctest.Wait()
	})
}
