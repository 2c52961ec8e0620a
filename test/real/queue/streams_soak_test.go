//go:build soak

package queue_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/cabrank/cabrank/examples/go/workpb"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// Subscribers who come together, each from a connection of his own, as after a deploy:
// a call of somebody else is served at once, however long they stay (R8).
func TestStreamsThatBeginTogether(t *testing.T) {
	const slots, subscribers, bound = 4, 8, 5 * time.Second
	c := harness.StartFault(t, harness.FaultWorker(t), "--workers", "1", "--slots", strconv.Itoa(slots), "--queue-timeout", "1m").Booted(1)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	for i := range subscribers {
		stream, err := workpb.NewWorkClient(harness.Dial(t, c.Addr)).Chat(ctx)
		if err == nil {
			err = stream.Send(&workpb.ChatMessage{Text: strconv.Itoa(i)})
		}
		testkit.Must(t, err)
	}
	c.WaitMetric("cabrank_queue_length", subscribers-slots+1)
	conn := harness.Dial(t, c.Addr)
	for i := range 12 {
		short, cancel := context.WithTimeout(t.Context(), bound)
		harness.CallIo(short, conn, strconv.Itoa(i), time.Millisecond).WantOK(t)
		cancel()
	}
	c.WaitMetric("cabrank_long_calls", slots-1)
	leave()
	c.Stop()
}
