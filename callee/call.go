package callee

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"time"

	"github.com/cabrank/cabrank/internal/broker"
	"github.com/cabrank/cabrank/internal/redislink"
)

var (
	// ErrLater is returned by a Handler that answers by Call.Answer, now or later.
	ErrLater = errors.New("answered later")

	// ErrAnswered is what Call.Answer says if the call has ended before: it was answered, or
	// its caller has left.
	ErrAnswered = errors.New("the call has ended before")

	// ErrExpired is what Call.Answer says if the time of the call is over.
	ErrExpired = errors.New("the call has expired")
)

// Call is a call that was taken.
//
// Concurrency: its methods may be called from anywhere. Nobody changes its fields.
type Call struct {
	// URI names the function.
	URI string
	// ID is a UUID, by which its caller's server knows it.
	ID string
	// Conn is a UUID, by which Redis has the results of its caller's server; of an old
	// server, those of its socket.
	Conn string
	// Args is a JSON value, nil if there is none.
	Args json.RawMessage

	callee   *Callee
	function *function // nil: only its result is to be stored
	entry    string    // as it is in Redis
	deadline time.Time
	done     <-chan struct{} // of its context
	end      context.CancelFunc
	several  bool // it takes several results
	credit   credit
	ended    atomic.Bool  // answered, or its time was over
	open     atomic.Int32 // 2: it has not ended, and its function has not returned
}

// Deadline is when its time is over; that of its context, too.
func (c *Call) Deadline() time.Time { return c.deadline }

// Answer has a result stored, or an error as the result. The result is encoded as JSON, a
// json.RawMessage is stored as it is, and nil means that there is no result.
//
// Errors: ErrAnswered and ErrExpired; or that of the JSON encoding, after which the call may
// be answered again.
func (c *Call) Answer(result any, err error) error {
	if raw, ok := result.(json.RawMessage); ok && raw == nil {
		result = nil
	}
	if err != nil {
		result = broker.ErrorResult(err)
	}
	payload, wrong := json.Marshal(answer{Conn: c.Conn, ID: c.ID, URI: c.URI, Args: result, Count: c.credit.given()})
	if wrong != nil {
		return wrong
	}
	if c.ended.Swap(true) {
		return ErrAnswered
	}
	c.close()
	if time.Until(c.deadline) < time.Millisecond {
		c.callee.drop(c)
		return ErrExpired
	}
	if err != nil {
		c.callee.counts.failed.Add(1)
	}
	c.callee.sender(redislink.ResultsKey(c.Conn)).add(stored{call: c, payload: string(payload)})
	c.leave()
	return nil
}

// answer is redislink.Entry with a result that is not encoded yet.
type answer struct {
	Conn  string `json:"conn_uuid"`
	ID    string `json:"msg_uuid"`
	URI   string `json:"uri"`
	Args  any    `json:"args,omitempty"`
	More  int    `json:"more,omitempty"`
	Count int    `json:"count,omitempty"`
}

// close ends its context, and has it hear no more words.
func (c *Call) close() {
	c.end()
	c.callee.running.remove(c)
}

// expire ends a call that nobody has answered, or wants.
func (c *Call) expire() {
	if !c.ended.Swap(true) {
		c.close()
		c.callee.drop(c)
	}
}

// cut reports whether the callee stops without waiting for the call.
func (c *Call) cut() bool { return c.callee.working.Err() != nil && time.Now().Before(c.deadline) }

// keeper is who keeps the call in Redis; nil: nobody.
func (c *Call) keeper() *keeper {
	if c.function == nil {
		return nil
	}
	return c.function.keeper
}

// leave is called twice, when a call has ended and when its function has returned: then
// its place is free.
func (c *Call) leave() {
	if c.open.Add(-1) == 0 {
		c.callee.places.release()
	}
}

// run runs the function, in a goroutine that has a place.
func (c *Call) run(ctx context.Context) {
	defer c.callee.calls.Done()
	defer c.leave()
	result, err := c.guarded(ctx)
	switch {
	case errors.Is(err, ErrLater):
		context.AfterFunc(ctx, c.expire) // its context ends with the call, too
		return
	case err != nil && c.keeper() != nil && c.cut():
		c.expire() // another callee may do better
		return
	}
	wrong := c.Answer(result, err)
	if wrong != nil && !errors.Is(wrong, ErrAnswered) && !errors.Is(wrong, ErrExpired) {
		_ = c.Answer(nil, wrong) // it has no form in JSON, and this has
	}
}
