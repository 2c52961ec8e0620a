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

	// mostQueued is how many orders may wait, and their bytes, in all outlets of a Redis;
	// what is above is refused.
	mostQueued, mostQueuedBytes = 100_000, 64 << 20
)

// order is commands with what is done with their answers: with the first error, and
// without any if all went well.
type order struct {
	commands []rueidis.Completed
	build    func(clock) []rueidis.Completed // the commands, when they are sent: none, if it is over. nil: commands
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
	key       string        // one that its Redis has
	most      int           // orders
	mostBytes int           // of them
	more      chan struct{} // holds one if there are orders

	// Of run.
	lost    bool      // Redis does not serve
	checked time.Time // when it was asked last
	clock   clock
	ended   uint64 // connections of the client that had, then

	away atomic.Int64 // since when it is lost, in ns since 1970; 0: it is not

	mu     sync.Mutex
	orders []order
	bytes  int // of them
	closed bool
}

// newOutlet returns one of so many that share what may wait.
func newOutlet(client *redislink.Client, log *slog.Logger, counts *counts, key string, of int) *outlet {
	return &outlet{client: client, log: log, counts: counts, key: key, most: mostQueued / of, mostBytes: mostQueuedBytes / of, more: make(chan struct{}, 1)}
}

// add queues commands, or calls done with the reason why not.
func (o *outlet) add(bytes int, done func(error), commands ...rueidis.Completed) {
	for i, command := range commands {
		commands[i] = command.Pin() // rueidis gives those that are answered to others, and one may be tried again
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
		ms, err := o.client.Check(ctx, o.client, o.key)
		o.clock.set(ms, o.checked, time.Now())
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

// tell logs that Redis is lost, or found, and reports whether it is lost.
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

// send sends what is not over. What Redis provably has not done is tried once more, unless
// it would come behind what was to follow it.
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
	verdicts, lastGone := make([]error, len(sent)), -1
	for i, one := range sent {
		verdicts[i] = o.verdict(answers[:len(one.commands)], written)
		answers = answers[len(one.commands):]
		if !errors.Is(verdicts[i], errLost) {
			lastGone = i
		}
	}
	for i, one := range sent {
		err := verdicts[i]
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

// verdict is what became of an order: done if nil, errLost if not, and ErrUnknown.
func (o *outlet) verdict(answers []rueidis.RedisResult, written uint64) (err error) {
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
