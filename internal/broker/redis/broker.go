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
	// Events is the address of where events are, if they have one of their own.
	Events string
	// CallCap is the most calls that wait for one URI. Zero: any number.
	CallCap int
	// Sweep is how often expired entries are swept: 30 s if zero.
	Sweep time.Duration
	// Log is told when Redis is lost and found.
	Log *slog.Logger
}

// Broker joins what has the same Redis.
//
// Life: Open, Listen once, anything, Close.
// Concurrency: every method may be called from anywhere.
type Broker struct {
	options Options
	calls   *masters // of calls and results
	events  *masters // of events: the same, unless they have their own
	feed    *feed
	pending pending
	counts  counts

	ctx    context.Context //nolint:containedctx // ends its goroutines, in Close
	cancel context.CancelFunc
	ended  sync.WaitGroup
}

// cappedText takes a call unless as many wait as may. Keys: timeout key, list.
// Arguments: milliseconds, payload, cap, and how long the timeout key is there.
const cappedText = `if redis.call('LLEN', KEYS[2]) >= tonumber(ARGV[3]) then
  return redis.error_reply('list capacity exceeded')
end
redis.call('SET', KEYS[1], ARGV[1], ARGV[4], ARGV[5])
return redis.call('LPUSH', KEYS[2], ARGV[2])`

// errName refuses calls in a Cluster, where the keys of a call have to be in one place.
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

// Database is the number of the database of calls, or else of events: servers of one number
// belong together.
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

// all returns the masters of calls, and those of events if they are others.
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

// Listen says where events go. The function must not block.
func (b *Broker) Listen(events func(broker.Topic, broker.Event)) { b.feed.listen(events) }

// OnGap says who is told of gaps between events.
func (b *Broker) OnGap(begins, ended func()) { b.feed.onGap(begins, ended) }

// Publish sends an event. While there is a gap it is refused.
func (b *Broker) Publish(e broker.Event, done func(error)) {
	if b.feed.away.Load() != 0 {
		b.counts.lost.Add(1)
		done(errLost) // its own sockets would not hear of it
		return
	}
	payload, err := json.Marshal(redislink.Event{ID: e.ID, Args: e.Args})
	if err != nil {
		done(err)
		return
	}
	// In a Cluster any node would do. The one that has the channel's slot has all events
	// of it, of all servers, in one order.
	command := b.events.client.B().Publish().Channel(e.Channel).Message(string(payload)).Build().SetSlot(e.Channel)
	b.events.outlet(e.Channel).add(len(payload), done, command)
}

// Subscribe is done when Redis has confirmed it. Without a connection it is refused.
func (b *Broker) Subscribe(topic broker.Topic, done func(error)) { b.feed.change(topic, true, done) }

// Unsubscribe is done when Redis has confirmed it.
func (b *Broker) Unsubscribe(topic broker.Topic, done func(error)) {
	b.feed.change(topic, false, done)
}

// Call asks for a function of whichever callee takes it.
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
			b.grant(w, total)
		})
	}
}

// push returns what puts a call into its list, behind its timeout key: that is there until
// the call's time is over, however late Redis comes to it.
func (b *Broker) push(w *waiter, list, payload string, at clock) []rueidis.Completed {
	build, timeoutKey := b.calls.client.B(), redislink.CallTimeoutKey(w.call.URI, w.id)
	ms := strconv.FormatInt(max(w.call.Timeout.Milliseconds(), 1), 10)
	how, until := "PXAT", at.of(w.until)
	if until == 0 { // its clock is not known
		how, until = "PX", max(time.Until(w.until).Milliseconds(), 1)
	}
	if b.options.CallCap > 0 { // the script's text: Redis keeps it compiled by that
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

// takeResults empties a list of results, and waits at it, on a connection of its own.
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

// pop takes results once. An error is one of the connection.
func (b *Broker) pop(conn rueidis.DedicatedClient, id string) error {
	ctx, cancel := context.WithTimeout(b.ctx, 2*popSeconds*time.Second)
	defer cancel()
	popped, err := conn.Do(ctx, conn.B().Blmpop().Timeout(popSeconds).Numkeys(1).Key(redislink.ResultsKey(id)).Right().Count(mostResults).Build()).ToArray()
	switch {
	case rueidis.IsRedisNil(err):
		return nil // nothing came
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
	// busy is how soon after the one before an answer of Redis has to come for the next
	// question to wait for others, gather long: each wakes two processes, which costs
	// more than the question. Who calls alone does not wait.
	busy   = 200 * time.Microsecond
	gather = 300 * time.Microsecond

	// popSeconds bounds a pop that waits, so that a connection that is dead is noticed.
	popSeconds = 5
	// mostResults is how many are taken at once.
	mostResults = 128
)

// deliver hands results to their callers, and deletes their timeout keys.
func (b *Broker) deliver(id string, entries []string) {
	keys := make([]string, 0, len(entries))
	for _, entry := range entries {
		var result redislink.Entry
		if err := json.Unmarshal([]byte(entry), &result); err != nil {
			continue // of somebody who does not keep to the form: its caller's call expires
		}
		if result.More > 0 { // its timeout key is that of those which follow
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

// Waiting returns how many calls have not ended; Redis knows how many are taken.
func (b *Broker) Waiting() (calls int, bytes int64) { return b.pending.count(), 0 }

// Close refuses what comes and ends what waits.
func (b *Broker) Close() {
	b.cancel()
	b.closeClients()
	b.ended.Wait()
	b.pending.endAll(broker.ErrClosed)
}
