package callee

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/cabrank/cabrank/internal/broker"
	"github.com/cabrank/cabrank/internal/redislink"
)

const (
	// askCredit is how often a function that waits for credit asks for it itself: a word
	// may have been lost.
	askCredit = time.Second

	// mostTopics is how many channels are subscribed by one command.
	mostTopics = 500
)

// running is the calls that have not ended, by their id, for words that come.
type running struct {
	mu    sync.Mutex
	calls map[string]*Call
}

func (r *running) add(c *Call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls[c.ID] = c
}

func (r *running) remove(c *Call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.calls[c.ID] == c { // an old server does not see to it that ids differ
		delete(r.calls, c.ID)
	}
}

func (r *running) get(id string) *Call {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.calls[id]
}

// listen hears what servers of ours say of calls, until ctx ends. Without it calls that are
// not wanted any more run to their end, and credit is asked for.
func (c *Callee) listen(ctx context.Context) {
	for wait := redislink.NewBackoff(); ctx.Err() == nil; wait.Pause(ctx) {
		conn, giveBack := c.client.Dedicate()
		broken := conn.SetPubSubHooks(rueidis.PubSubHooks{OnMessage: c.hear})
		if err := c.subscribe(ctx, conn); err == nil {
			wait.Reset()
			select {
			case <-broken: //nolint:errcheck // whatever broke it, another one is opened
			case <-ctx.Done():
			}
		}
		conn.Close()
		giveBack()
	}
}

func (c *Callee) subscribe(ctx context.Context, conn rueidis.DedicatedClient) error {
	ctx, cancel := context.WithTimeout(ctx, redislink.AnswerWithin)
	defer cancel()
	var channels []string
	for uri := range maps.Keys(c.functions) {
		channels = append(channels, redislink.WordsChannel(uri))
	}
	for some := range slices.Chunk(channels, mostTopics) {
		if err := conn.Do(ctx, conn.B().Subscribe().Channel(some...).Build()).Error(); err != nil {
			return err
		}
	}
	return nil
}

// hear is called for one word after the other.
func (c *Callee) hear(m rueidis.PubSubMessage) {
	var w redislink.Word
	if err := json.Unmarshal([]byte(m.Message), &w); err != nil {
		return // of somebody who does not keep to the form
	}
	call := c.running.get(w.ID)
	switch {
	case call == nil: // another callee has it, or it has ended
	case w.Cancel:
		call.expire()
	default:
		call.credit.grow(w.Credit)
	}
}

// credit is how many results that are not the last one a call may have.
type credit struct {
	mu          sync.Mutex
	total, used int
	more        chan struct{} // holds one if there may be some
}

// grow sets how many there may be in all, from the beginning.
func (c *credit) grow(total int) {
	c.mu.Lock()
	c.total = max(c.total, total)
	c.mu.Unlock()
	select {
	case c.more <- struct{}{}:
	default: // it was told already
	}
}

// use returns the place of the next result, from 1; 0 if there is no credit.
func (c *credit) use() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.used >= c.total {
		return 0
	}
	c.used++
	return c.used
}

// given is how many there were.
func (c *credit) given() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.used
}

// Send has a result stored that is not the last one, of a call that takes several: one of
// juggler.1 with credit. It waits until the caller has given credit. What it stores comes in
// order, and before what Answer stores; if the call runs again (AtLeastOnce), its caller gets
// none twice.
//
// Errors: if the caller takes one result alone; if the call has ended; that of ctx; that of
// the form in JSON.
// Concurrency: by one goroutine at a time.
func (c *Call) Send(ctx context.Context, result any) error {
	if !c.several {
		return broker.ErrOneResult
	}
	args, err := json.Marshal(result) // before it has a place, which another one would miss
	if err != nil {
		return err
	}
	place, err := c.await(ctx)
	if err != nil {
		return err
	}
	payload, err := json.Marshal(answer{Conn: c.Conn, ID: c.ID, URI: c.URI, Args: json.RawMessage(args), More: place})
	if err == nil {
		c.callee.sender(redislink.ResultsKey(c.Conn)).add(stored{call: c, payload: string(payload), more: true})
	}
	return err
}

// await waits for credit.
func (c *Call) await(ctx context.Context) (place int, err error) {
	for !c.ended.Load() {
		if place := c.credit.use(); place > 0 {
			return place, nil
		}
		get := c.callee.client.B().Get().Key(redislink.CreditKey(c.URI, c.ID)).Build()
		asking, cancel := context.WithTimeout(ctx, redislink.AnswerWithin)
		total, err := c.callee.client.Do(asking, get).AsInt64()
		cancel()
		if err == nil {
			c.credit.grow(int(total))
		}
		if place := c.credit.use(); place > 0 {
			return place, nil
		}
		timer := time.NewTimer(askCredit)
		select {
		case <-c.credit.more:
		case <-timer.C:
		case <-c.done:
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
	}
	return 0, errEnded
}

var errEnded = errors.New("the call has ended")

// HandleStream has a function answer the calls of a URI with any number of results: those
// that it sends, for which it waits until the caller wants them. The call ends when it
// returns.
//
// Ordering: before Run. A second function for a URI is an error of Run.
func HandleStream[A, R any](c *Callee, uri string, f func(ctx context.Context, args A, send func(R) error) error, options ...Option) {
	c.HandleCalls(uri, func(ctx context.Context, call *Call) (any, error) {
		var args A
		if err := json.Unmarshal(call.Args, &args); err != nil {
			return nil, err
		}
		return nil, f(ctx, args, func(result R) error { return call.Send(ctx, result) })
	}, options...)
}
