package callee

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/internal/testkit/fakeredis"
)

// A pipeline of moves comes to Redis in two parts, and calls between them: what the second
// part has moved stands behind a nil, and is run.
func TestMovesInTwoParts(t *testing.T) {
	testkit.CheckLeaks(t)
	entry := func(id string) string {
		text := fmt.Sprintf(`{"conn_uuid":"c","msg_uuid":%q,"uri":"u","args":%q}`, id, id)
		return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text)
	}
	const none = "_\r\n"
	var mu sync.Mutex
	answers := map[string][]string{ // the third and fourth LMOVE are behind the second BLMOVE
		"BLMOVE": {entry("a"), entry("c")},
		"LMOVE":  {entry("b"), none, entry("d"), none},
	}
	server := fakeredis.Start(t, func(_ *fakeredis.Conn, args []string) string {
		mu.Lock()
		defer mu.Unlock()
		if left := answers[args[0]]; len(left) > 0 {
			answers[args[0]] = left[1:]
			return left[0]
		}
		return fakeredis.Default(args)
	})
	c := New(Options{Redis: server.Address, Log: slog.New(slog.DiscardHandler)})
	ran := make(chan string, 10)
	Handle(c, "u", func(_ context.Context, id string) (string, error) {
		ran <- id
		return id, nil
	}, AtLeastOnce())
	testkit.Must(t, c.Start())
	t.Cleanup(func() { _ = c.Shutdown(context.Background()) })
	var got []string
	for range 4 {
		id := testkit.Take(t, ran, time.Minute, "of four calls these ran: %v", got)
		got = append(got, id)
	}
	if slices.Sort(got); !slices.Equal(got, []string{"a", "b", "c", "d"}) {
		t.Errorf("got %v", got)
	}
}
