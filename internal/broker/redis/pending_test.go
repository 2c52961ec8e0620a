package redis

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cabrank/cabrank/internal/broker"
)

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
