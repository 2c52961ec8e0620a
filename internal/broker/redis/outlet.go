package redis

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/cabrank/cabrank/internal/broker"
	"github.com/cabrank/cabrank/internal/redislink"
)

const (
	// mostPipeline is how many commands are sent together.
	mostPipeline = 512

	// mostQueued is how many orders may wait, and their bytes, in all outlets of a Redis;
	// what is above is refused.
	mostQueued, mostQueuedBytes = 100_000, 64 << 20
)

// order is commands with what is done with their answers: with the first error, and
// without any if all went well.
type order struct {
	commands []rueidis.Completed
	bytes    int // about
	done     func(error)
}

// outlet sends orders one after the other: while Redis answers, the next ones gather.
//
// Concurrency: add may be called from anywhere. done is called in the goroutine of run.
type outlet struct {
	client    *redislink.Client
	log       *slog.Logger
	key       string        // one that its Redis has
	most      int           // orders
	mostBytes int           // of them
	more      chan struct{} // holds one if there are orders

	// Of run.
	lost    bool      // Redis does not serve
	checked time.Time // when it was asked last
	ended   uint64    // connections of the client that had, then

	mu     sync.Mutex
	orders []order
	bytes  int // of them
	closed bool
}

// newOutlet returns one of so many that share what may wait.
func newOutlet(client *redislink.Client, log *slog.Logger, key string, of int) *outlet {
	return &outlet{client: client, log: log, key: key, most: mostQueued / of, mostBytes: mostQueuedBytes / of, more: make(chan struct{}, 1)}
}

// add queues an order, or calls done with the reason why not.
func (o *outlet) add(bytes int, done func(error), commands ...rueidis.Completed) {
	o.mu.Lock()
	err := error(nil)
	switch {
	case o.closed:
		err = broker.ErrClosed
	case len(o.orders) >= o.most, o.bytes+bytes > o.mostBytes && len(o.orders) > 0:
		err = broker.ErrFull
	default:
		o.orders = append(o.orders, order{commands, bytes, done})
		o.bytes += bytes
	}
	o.mu.Unlock()
	if err != nil {
		done(err)
		return
	}
	select {
	case o.more <- struct{}{}:
	default: // it was told already
	}
}

// checkEvery is how often Redis is asked whether it serves.
const checkEvery = time.Second

// run sends until ctx ends; what is queued then is refused. It pauses when Redis does not
// serve, so that each order is not a new attempt.
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
			if err == nil && len(batch) > 0 {
				err = o.send(ctx, batch)
			}
			if o.tell(ctx, err) {
				wait.Pause(ctx)
				continue
			}
			wait.Reset()
			if asked = len(batch) > 0; len(batch) > 1 {
				time.Sleep(gather)
			}
		}
	}
}

// next returns what is to be sent, when Redis serves. What waits is refused if it does not.
func (o *outlet) next(ctx context.Context) (batch []order, err error) {
	if o.lost || o.ended != o.client.Ended() || time.Since(o.checked) >= checkEvery {
		if err := o.check(ctx); err != nil {
			o.refuse(errLost)
			return nil, err
		}
	}
	return o.take(), nil
}

// check asks whether Redis serves. A connection that has ended is made anew.
func (o *outlet) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, redislink.AnswerWithin)
	defer cancel()
	for again := true; ; again = false {
		o.ended, o.checked = o.client.Ended(), time.Now()
		_, err := o.client.Check(ctx, o.client, o.key)
		if err == nil || !again || o.ended == o.client.Ended() {
			return err
		}
	}
}

// refuse ends what waits.
func (o *outlet) refuse(why error) {
	o.mu.Lock()
	left := o.orders
	o.orders, o.bytes = nil, 0
	o.mu.Unlock()
	for _, order := range left {
		order.done(why)
	}
}

func (o *outlet) take() []order {
	o.mu.Lock()
	defer o.mu.Unlock()
	n, commands := 0, 0
	for n < len(o.orders) && commands < mostPipeline {
		commands += len(o.orders[n].commands)
		o.bytes -= o.orders[n].bytes
		n++
	}
	batch := o.orders[:n:n]
	if o.orders = o.orders[n:]; len(o.orders) == 0 {
		o.orders = nil
	}
	return batch
}

// tell logs that Redis is lost, or found, and reports whether it is lost.
func (o *outlet) tell(ctx context.Context, failure error) (lost bool) {
	switch before := o.lost; {
	case ctx.Err() != nil:
	case failure != nil && !before:
		o.log.Warn("redis does not answer: what it is asked for is refused", "error", failure)
	case failure == nil && before:
		o.log.Info("redis answers again")
	}
	o.lost = failure != nil
	return o.lost
}

// send returns why Redis has not answered all of it, nil if it has.
func (o *outlet) send(ctx context.Context, batch []order) (failure error) {
	commands := make([]rueidis.Completed, 0, 2*len(batch))
	for _, order := range batch {
		commands = append(commands, order.commands...)
	}
	ctx, cancel := context.WithTimeout(ctx, redislink.AnswerWithin)
	defer cancel()
	answers := o.client.DoMulti(ctx, commands...)
	for _, order := range batch {
		err := error(nil)
		for _, answer := range answers[:len(order.commands)] {
			if e := answer.Error(); e != nil && err == nil {
				err = e
			}
			if e := answer.Error(); answer.NonRedisError() != nil || redislink.IsUnfit(e) {
				failure = e
			}
		}
		answers = answers[len(order.commands):]
		order.done(err)
	}
	return failure
}
