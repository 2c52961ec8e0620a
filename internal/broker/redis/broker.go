package redis

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/cabrank/cabrank/internal/broker"
	"github.com/cabrank/cabrank/internal/redislink"
)

// Options of a Broker.
type Options struct {
	// Address of one Redis, a Cluster or Sentinels, as redislink.ClientOption has it.
	Address string
	// Events is the address of another Redis for events; "" is the same as Address.
	Events string
	// CallCap is how many calls may wait for one URI. Zero: any number.
	CallCap int
	// Sweep is how often expired entries are swept: 30 s if zero.
	Sweep time.Duration
	// Log is told when Redis is lost and found.
	Log *slog.Logger
}

// Broker connects all servers, sockets and callees of one Redis.
//
// Life: Open, Listen once, anything, Close.
// Concurrency: every method may be called from anywhere.
type Broker struct {
	options Options
	calls   *masters // of calls and results
	events  *masters // of events: the same, unless Options.Events is set
	feed    *feed
	pending pending
	counts  counts

	ctx    context.Context //nolint:containedctx // ends its goroutines, in Close
	cancel context.CancelFunc
	ended  sync.WaitGroup
}

// cappedText takes a call unless cap calls wait. Keys: timeout key, list. Arguments:
// milliseconds, payload, cap, and the expiry of the timeout key.
const cappedText = `if redis.call('LLEN', KEYS[2]) >= tonumber(ARGV[3]) then
  return redis.error_reply('list capacity exceeded')
end
redis.call('SET', KEYS[1], ARGV[1], ARGV[4], ARGV[5])
return redis.call('LPUSH', KEYS[2], ARGV[2])`

// errName refuses calls in a Cluster, where all keys of a call have to be in one slot.
var errName = errors.New("in a Redis Cluster a URI is not empty and does not begin with }")

// Open connects. Errors: one line that names the address.
func Open(options Options) (b *Broker, err error) {
	if options.Sweep == 0 {
		options.Sweep = 30 * time.Second
	}
	b = &Broker{options: options}
	b.pending = pending{calls: map[string]*waiter{}, left: b.left, over: b.over}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	if b.calls, err = openMasters(b.ctx, options.Address, options.Log, &b.counts); err != nil {
		b.cancel()
		return nil, err
	}
	b.events = b.calls
	if options.Events != "" {
		b.events, err = openMasters(b.ctx, options.Events, options.Log, &b.counts)
	}
	if err == nil {
		b.feed = newFeed(b)
		err = b.feed.open()
	}
	if err != nil {
		b.cancel()
		b.closeClients()
		return nil, err
	}
	if n := b.Database(); n != 0 && options.Log != nil {
		options.Log.Warn("redis: databases have no channels of their own: events are those of all databases", "database", n)
	}
	b.start()
	return b, nil
}

// Database is the number of the database of calls, or else of events: servers with the
// same number belong together.
func (b *Broker) Database() int { return cmp.Or(b.calls.client.Database, b.events.client.Database) }

func (b *Broker) start() {
	for _, id := range b.calls.ids {
		b.ended.Go(func() { b.takeResults(id) })
	}
	for _, m := range b.all() {
		for _, out := range m.outlets {
			b.ended.Go(func() { out.run(b.ctx) })
		}
	}
	b.ended.Go(b.feed.run)
	b.ended.Go(b.sweeps)
}

// all returns the masters of calls, and those of events if they are different.
func (b *Broker) all() []*masters {
	if b.events == nil || b.events == b.calls {
		return []*masters{b.calls}
	}
	return []*masters{b.calls, b.events}
}

func (b *Broker) closeClients() {
	for _, m := range b.all() {
		m.client.Close()
	}
}

// Listen sets the function for events. It must not block.
func (b *Broker) Listen(events func(broker.Topic, broker.Event)) { b.feed.listen(events) }

// OnGap sets the functions that are called for gaps between events.
func (b *Broker) OnGap(begins, ended func()) { b.feed.onGap(begins, ended) }

// Publish sends an event. In a gap it is refused.
func (b *Broker) Publish(e broker.Event, done func(error)) {
	if b.feed.away.Load() != 0 {
		b.counts.lost.Add(1)
		done(errLost) // its own sockets would not get the event
		return
	}
	payload, err := json.Marshal(redislink.Event{ID: e.ID, Args: e.Args})
	if err != nil {
		done(err)
		return
	}
	// In a Cluster any node would do. The master with the channel's slot gets all its
	// events, from all servers, in one order.
	command := b.events.client.B().Publish().Channel(e.Channel).Message(string(payload)).Build().SetSlot(e.Channel)
	b.events.outlet(e.Channel).add(len(payload), done, command)
}

// Subscribe is done when Redis has confirmed it. Without a connection it is refused.
func (b *Broker) Subscribe(topic broker.Topic, done func(error)) { b.feed.change(topic, true, done) }

// Unsubscribe is done when Redis has confirmed it.
func (b *Broker) Unsubscribe(topic broker.Topic, done func(error)) {
	b.feed.change(topic, false, done)
}

// Call sends a call to the first callee that takes it.
func (b *Broker) Call(ctx context.Context, call broker.Call) {
	if b.calls.client.IsCluster() && (call.URI == "" || call.URI[0] == '}') {
		call.Accepted(errName)
		return
	}
	id, list := broker.NewID(), redislink.CallsKey(call.URI)
	to := b.calls.index(list)
	payload, err := json.Marshal(redislink.Entry{Conn: b.calls.ids[to], ID: id, URI: call.URI, Args: call.Args, Several: call.Stream != nil})
	if err != nil {
		call.Accepted(err)
		return
	}
	w := b.pending.add(ctx, id, call)
	b.calls.outlets[to].queue(order{bytes: len(payload), done: w.sent, build: func(at clock) []rueidis.Completed {
		if !w.take() {
			return nil
		}
		return b.push(w, list, string(payload), at)
	}})
	if call.Stream != nil {
		total := 0 // Watch calls one after the other
		call.Stream.Watch(func(more int) {
			total += more
			b.passCredit(w, total)
		})
	}
}

// push returns the commands that set the timeout key of a call and put the call into its
// list. The key expires when the call's time is over, however late Redis gets to it.
func (b *Broker) push(w *waiter, list, payload string, at clock) []rueidis.Completed {
	build, timeoutKey := b.calls.client.B(), redislink.CallTimeoutKey(w.call.URI, w.id)
	ms := strconv.FormatInt(max(w.call.Timeout.Milliseconds(), 1), 10)
	how, until := "PXAT", at.of(w.until)
	if until == 0 { // the clock of Redis is not known
		how, until = "PX", max(time.Until(w.until).Milliseconds(), 1)
	}
	if b.options.CallCap > 0 { // Redis caches the compiled script by its text
		return []rueidis.Completed{build.Eval().Script(cappedText).Numkeys(2).Key(timeoutKey, list).
			Arg(ms, payload, strconv.Itoa(b.options.CallCap), how, strconv.FormatInt(until, 10)).Build()}
	}
	set := build.Set().Key(timeoutKey).Value(ms)
	lpush := build.Lpush().Key(list).Element(payload).Build()
	if how == "PX" {
		return []rueidis.Completed{set.PxMilliseconds(until).Build(), lpush}
	}
	return []rueidis.Completed{set.PxatMillisecondsTimestamp(until).Build(), lpush}
}

// takeResults takes results from a list and waits for more, on a connection of its own.
func (b *Broker) takeResults(id string) {
	for wait := redislink.NewBackoff(); b.ctx.Err() == nil; wait.Pause(b.ctx) {
		conn, giveBack := b.calls.client.Dedicate()
		stop := context.AfterFunc(b.ctx, conn.Close) // ends a pop that waits
		for last := time.Now(); ; last = time.Now() {
			if err := b.pop(conn, id); err != nil {
				b.calls.client.Look(err)
				break
			}
			wait.Reset()
			if time.Since(last) < busy {
				time.Sleep(gather)
			}
		}
		stop()
		conn.Close()
		giveBack()
	}
}

// pop takes results once. An error is about the connection.
func (b *Broker) pop(conn rueidis.DedicatedClient, id string) error {
	ctx, cancel := context.WithTimeout(b.ctx, 2*popSeconds*time.Second)
	defer cancel()
	popped, err := conn.Do(ctx, conn.B().Blmpop().Timeout(popSeconds).Numkeys(1).Key(redislink.ResultsKey(id)).Right().Count(mostResults).Build()).ToArray()
	switch {
	case rueidis.IsRedisNil(err):
		return nil // no result came
	case err != nil:
		return err
	case len(popped) == 2:
		entries, err := popped[1].AsStrSlice()
		if err != nil {
			return err
		}
		b.deliver(id, entries)
	}
	return nil
}

const (
	// If an answer of Redis comes sooner than busy after the last one, the next question
	// waits for gather, so that results gather: each question wakes two processes, which
	// costs more than the question. A single caller does not wait.
	busy   = 200 * time.Microsecond
	gather = 300 * time.Microsecond

	// popSeconds bounds a waiting pop, so that a dead connection is noticed.
	popSeconds = 5
	// mostResults is how many results one pop takes.
	mostResults = 128
)

// deliver hands results to their callers, and deletes their timeout keys.
func (b *Broker) deliver(id string, entries []string) {
	keys := make([]string, 0, len(entries))
	for _, entry := range entries {
		var result redislink.Entry
		if err := json.Unmarshal([]byte(entry), &result); err != nil {
			continue // not written by a callee of this protocol: the call expires
		}
		if result.More > 0 { // the timeout key is still needed for the results that follow
			b.pending.more(result.ID, result.More, result.Args)
			continue
		}
		keys = append(keys, redislink.ResultTimeoutKey(id, result.ID))
		b.pending.last(result.ID, result.Count, result.Args)
	}
	if len(keys) > 0 {
		b.calls.outlet(keys[0]).add(0, func(error) {}, b.calls.client.B().Del().Key(keys...).Build()) // they expire, if not
	}
}

// Waiting returns how many calls have not ended. How many of them callees have taken only
// Redis knows.
func (b *Broker) Waiting() (calls int, bytes int64) { return b.pending.count(), 0 }

// Close refuses new requests and ends waiting calls.
func (b *Broker) Close() {
	b.cancel()
	b.closeClients()
	b.ended.Wait()
	b.pending.endAll(broker.ErrClosed)
}
