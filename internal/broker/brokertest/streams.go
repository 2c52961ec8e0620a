package brokertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/broker"
)

// taker is a caller that takes several results.
type taker struct {
	mu      sync.Mutex
	changed sync.Cond
	credit  int
	watches func(int)
	results chan string
}

func newTaker(credit int) *taker {
	t := &taker{credit: credit, results: make(chan string, 1000)}
	t.changed.L = &t.mu
	return t
}

func (t *taker) grant(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.credit += n
	t.changed.Broadcast()
	if t.watches != nil {
		t.watches(n)
	}
}

// Send implements broker.Stream.
func (t *taker) Send(ctx context.Context, result json.RawMessage) error {
	defer context.AfterFunc(ctx, t.wake)()
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.credit == 0 && ctx.Err() == nil {
		t.changed.Wait()
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	t.credit--
	t.results <- string(result)
	return nil
}

func (t *taker) wake() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.changed.Broadcast()
}

// Offer implements broker.Stream.
func (t *taker) Offer(result json.RawMessage) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.credit == 0 {
		return false
	}
	t.credit--
	t.results <- string(result)
	return true
}

// Watch implements broker.Stream.
func (t *taker) Watch(f func(int)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.watches = f
	f(t.credit)
}

// callStream makes a call whose other results go to takes, which may be nil.
func callStream(ctx context.Context, h House, uri, args string, takes broker.Stream) pending {
	return place(ctx, h.Broker, broker.Call{URI: uri, Args: json.RawMessage(args), Timeout: within, Stream: takes, IfServed: true})
}

func (t *taker) want(test testing.TB, results ...string) {
	test.Helper()
	for _, want := range results {
		if got := receive(test, t.results, "a result"); got != want {
			test.Fatalf("got %s, want %s", got, want)
		}
	}
}

// counter sends numbers, then returns how many it has sent.
func counter(_ context.Context, args json.RawMessage, send func(json.RawMessage) error) (json.RawMessage, error) {
	var n int
	err := json.Unmarshal(args, &n)
	for i := 0; i < n && err == nil; i++ {
		err = send(fmt.Append(nil, i))
	}
	return args, err
}

func streams(t guest) {
	defer t.ServeStream("count", 2, counter)()
	takes := newTaker(2)
	p := callStream(t.Context(), t.House, "count", "5", takes)
	takes.want(t, "0", "1")
	select {
	case got := <-takes.results:
		t.Fatalf("without credit: %s", got)
	case <-time.After(50 * time.Millisecond):
	}
	takes.grant(1)
	takes.want(t, "2")
	takes.grant(100)
	takes.want(t, "3", "4")
	p.want(t, "5", nil)
}

func streamsToOne(t guest) {
	defer t.ServeStream("count", 1, counter)()
	callStream(t.Context(), t.House, "count", "5", nil).want(t, `{"error":{"code":412,"message":"the function has several results: call it with credit"}}`, nil)
	callStream(t.Context(), t.House, "count", "0", nil).want(t, "0", nil)
}

func streamLeft(t guest) {
	ended := make(chan error, 1)
	defer t.ServeStream("count", 1, func(ctx context.Context, args json.RawMessage, send func(json.RawMessage) error) (json.RawMessage, error) {
		result, err := counter(ctx, args, send)
		ended <- err
		return result, err
	})()
	ctx, leave := context.WithCancel(t.Context())
	takes := newTaker(1)
	p := callStream(ctx, t.House, "count", "5", takes)
	takes.want(t, "0")
	leave()
	if got := receive(t, p.answered, "an answer"); !errors.Is(got.err, context.Canceled) {
		t.Errorf("answered %q, %v", got.result, got.err)
	}
	if err := receive(t, ended, "the function to end"); err == nil {
		t.Error("it was not told")
	}
}

func isServed(t guest) {
	if t.Unannounced {
		t.Skip("who serves what is not known")
	}
	if err := receive(t, callStream(t.Context(), t.House, "nobody", "1", nil).accepted, "a refusal"); !errors.Is(err, broker.ErrNobody) {
		t.Errorf("refused by %v", err)
	}
	defer t.ServeStream("one", 1, counter)()
	callStream(t.Context(), t.House, "one", "0", nil).want(t, "0", nil)
}
