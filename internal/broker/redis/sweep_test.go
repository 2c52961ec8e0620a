package redis

import (
	"fmt"
	"log/slog"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

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
			if err != nil {
				t.Error(err)
			}
			if cursor++; cursor < pages {
				return fmt.Sprintf("*2\r\n$%d\r\n%d\r\n*0\r\n", len(strconv.Itoa(cursor)), cursor)
			}
			return "*2\r\n$1\r\n0\r\n*2\r\n+juggler:calls:{u}\r\n+juggler:other:{u}\r\n"
		case "LRANGE":
			if args[1] != "juggler:calls:{u}" {
				t.Errorf("swept %s", args[1])
			}
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
		if asked.Load() != want.asked || swept.Load() != want.swept {
			t.Errorf("sweep %d: asked %d times, swept %d", i, asked.Load(), swept.Load())
		}
	}
}
