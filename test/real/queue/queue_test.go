//go:build soak

package queue_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/cabrank/cabrank/examples/go/workpb"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
	"github.com/cabrank/cabrank/test/real/oneslot"
)

// Workers of one slot at 70 % load: a call never gets to a worker that is busy,
// and waits about as long as in a perfect queue. The figures at length are in
// `make bench-queue`; this holds what a busy machine can hold.
func TestQueueIsNearlyPerfect(t *testing.T) { queueTrial(t, 1, 500, 1.5, time.Second) }

// At 140 % with deadlines nothing is begun in vain (R16), whatever a busy
// worker does with a call too many.
func TestOverloadIsWorkedInTime(t *testing.T) {
	for _, busy := range []oneslot.WhenBusy{oneslot.Queue, oneslot.Skip, oneslot.Refuse} {
		t.Run(string(busy), func(t *testing.T) { overloadTrial(t, 1, 800, busy, 0.35) })
	}
}

// Callers who wait for answers before they send more are not kept from them by the
// order in which the queue serves them: a disturbance is over when it is over. There are
// more callers than half of a deadline serves, too.
func TestDisturbanceIsOver(t *testing.T) {
	for _, lang := range []string{"python", "ruby"} {
		for _, callers := range []int{60, 120, 240} {
			for name, by := range map[string]disturbing{"stopped": stopped(1500 * time.Millisecond), "killed": killed} {
				t.Run(fmt.Sprintf("%s, %d callers, %s", lang, callers, name), func(t *testing.T) {
					recovers(t, lang, callers, by, 8*time.Second)
				})
			}
		}
	}
}

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
}
