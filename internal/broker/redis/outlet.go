package redis

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/cabrank/cabrank/internal/broker"
	"github.com/cabrank/cabrank/internal/redislink"
)

const (
	// mostPipeline is how many commands are sent together.
	mostPipeline = 512

	// mostQueued and mostQueuedBytes bound the waiting orders in all outlets of a Redis;
	// further ones are refused.
	mostQueued, mostQueuedBytes = 100_000, 64 << 20
)

// order is a few commands that are sent together. done is called with the first error of
// their answers, nil without one.
type order struct {
	commands []rueidis.Completed
	build    func(clock) []rueidis.Completed // makes the commands when they are sent, none if it is too late; nil: commands
	bytes    int                             // about
	done     func(error)
	tried    bool
}

// outlet sends orders one after the other: while Redis answers, the next ones gather.
//
// Concurrency: add may be called from anywhere. done is called in the goroutine of run.
type outlet struct {
	client    *redislink.Client
	log       *slog.Logger
	counts    *counts
	key       string        // a key that is at its master
	most      int           // bound of orders
	mostBytes int           // bound of bytes
	more      chan struct{} // holds a token if orders wait

	// Owned by run.
	lost    bool      // Redis does not serve
	checked time.Time // when Redis was last asked
	clock   clock
	ended   uint64 // ended connections of the client at that time

	away atomic.Int64 // since when it is lost, in ns since 1970; 0: it is not

	mu     sync.Mutex
	orders []order
	bytes  int // of all orders
	closed bool
}

// newOutlet returns one of a number of outlets that share the bounds.
func newOutlet(client *redislink.Client, log *slog.Logger, counts *counts, key string, of int) *outlet {
	return &outlet{client: client, log: log, counts: counts, key: key, most: mostQueued / of, mostBytes: mostQueuedBytes / of, more: make(chan struct{}, 1)}
}

// add queues commands, or calls done with the reason why not.
func (o *outlet) add(bytes int, done func(error), commands ...rueidis.Completed) {
	for i, command := range commands {
		commands[i] = command.Pin() // rueidis would reuse it after its answer, but it may be tried again
	}
	o.queue(order{bytes: bytes, done: done, commands: commands})
}

// queue queues an order, or calls done with the reason why not.
func (o *outlet) queue(what order) {
	o.mu.Lock()
	err := error(nil)
	switch {
	case o.closed:
		err = broker.ErrClosed
	case len(o.orders) >= o.most, o.bytes+what.bytes > o.mostBytes && len(o.orders) > 0:
		err = broker.ErrFull
	default:
		o.orders = append(o.orders, what)
		o.bytes += what.bytes
	}
	o.mu.Unlock()
	if err != nil {
		what.done(err)
		return
	}
	select {
	case o.more <- struct{}{}:
	default: // the token is there already
	}
}

// checkEvery is how often Redis is asked whether it serves.
const checkEvery = time.Second

// run sends until ctx ends; orders that wait then are refused. It pauses while Redis does
// not serve, so that not every order is a new attempt.
func (o *outlet) run(ctx context.Context) {
	idle := time.NewTicker(checkEvery)
	defer idle.Stop()
	for wait := redislink.NewBackoff(); ; {
		select {
		case <-ctx.Done():
			o.mu.Lock()
			o.closed = true
			o.mu.Unlock()
			o.refuse(broker.ErrClosed)
			return
		case <-o.more:
		case <-idle.C:
		}
		for asked := true; asked && ctx.Err() == nil; {
			batch, err := o.next(ctx)
			if o.tell(ctx, err) {
				wait.Pause(ctx)
				continue
			}
			o.send(ctx, batch)
			wait.Reset()
			if asked = len(batch) > 0; len(batch) > 1 {
				time.Sleep(gather)
			}
		}
	}
}

// next returns the orders to send. If Redis does not serve it refuses all waiting orders.
func (o *outlet) next(ctx context.Context) (batch []order, err error) {
	if o.lost || o.ended != o.client.Ended() || time.Since(o.checked) >= checkEvery {
		if err := o.check(ctx); err != nil {
			o.refuse(errLost)
			return nil, err
		}
	}
	return o.take(), nil
}

// check asks whether Redis serves. A connection that has ended is made again.
func (o *outlet) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, redislink.AnswerWithin)
	defer cancel()
	for again := true; ; again = false {
		o.ended, o.checked = o.client.Ended(), time.Now()
		ms, err := o.client.Check(ctx, o.client, o.key)
		o.clock.set(ms, o.checked, time.Now())
		if err == nil || !again || o.ended == o.client.Ended() {
			return err
		}
	}
}

// refuse refuses all waiting orders.
func (o *outlet) refuse(why error) {
	o.mu.Lock()
	left := o.orders
	o.orders, o.bytes = nil, 0
	o.mu.Unlock()
	o.counts.lost.Add(uint64(len(left)))
	for _, order := range left {
		order.done(why)
	}
}

func (o *outlet) take() []order {
	o.mu.Lock()
	defer o.mu.Unlock()
	n, commands := 0, 0
	for n < len(o.orders) && commands < mostPipeline {
		commands += max(len(o.orders[n].commands), 2)
		o.bytes -= o.orders[n].bytes
		n++
	}
	batch := o.orders[:n:n]
	if o.orders = o.orders[n:]; len(o.orders) == 0 {
		o.orders = nil
	}
	return batch
}

// tell logs that Redis is lost, or answers again, and reports whether it is lost.
func (o *outlet) tell(ctx context.Context, failure error) (lost bool) {
	switch before := o.lost; {
	case ctx.Err() != nil:
	case failure != nil && !before:
		o.away.Store(time.Now().UnixNano())
		o.log.Warn("redis does not answer: what it is asked for is refused", "error", failure)
	case failure == nil && before:
		o.away.Store(0)
		o.log.Info("redis answers again")
	}
	o.lost = failure != nil
	return o.lost
}

// send sends the orders whose time is not over. An order that Redis has provably not done
// is tried once more, unless a later order was done already.
func (o *outlet) send(ctx context.Context, batch []order) {
	commands := make([]rueidis.Completed, 0, 2*len(batch))
	sent := batch[:0]
	for _, one := range batch {
		if one.build != nil {
			one.commands = one.build(o.clock)
		}
		if len(one.commands) > 0 {
			sent = append(sent, one)
			commands = append(commands, one.commands...)
		}
	}
	if len(sent) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, redislink.AnswerWithin)
	defer cancel()
	written := o.client.Written()
	answers := o.client.DoMulti(ctx, commands...)
	var again []order
	unknown := 0
	outcomes, lastGone := make([]error, len(sent)), -1
	for i, one := range sent {
		outcomes[i] = o.outcome(answers[:len(one.commands)], written)
		answers = answers[len(one.commands):]
		if !errors.Is(outcomes[i], errLost) {
			lastGone = i
		}
	}
	for i, one := range sent {
		err := outcomes[i]
		switch late := i < lastGone && one.build == nil; { // calls have no order
		case errors.Is(err, errLost) && !one.tried && !late:
			one.tried = true
			again = append(again, one)
			continue
		case errors.Is(err, errLost):
			o.counts.lost.Add(1)
		case errors.Is(err, broker.ErrUnknown):
			unknown++
		}
		one.done(err)
	}
	if unknown > 0 {
		o.counts.unknown.Add(uint64(unknown))
		o.log.Warn("redis has not answered: whether it has done what it was asked is not known", "orders", unknown)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, one := range again {
		o.bytes += one.bytes
	}
	o.orders = append(again, o.orders...)
}

// outcome returns nil for an order that was done, errLost if it was not, ErrUnknown if
// that is not known, else the error of Redis.
func (o *outlet) outcome(answers []rueidis.RedisResult, written uint64) (err error) {
	for _, answer := range answers {
		said, failed := answer.Error(), answer.NonRedisError()
		switch {
		case failed != nil && o.client.HasWritten(written, failed):
			return broker.ErrUnknown
		case failed != nil, redislink.IsUnfit(said):
			err = errLost
		case said != nil && err == nil:
			err = said
		}
	}
	return err
}
