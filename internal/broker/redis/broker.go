package redis

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/cabrank/cabrank/internal/broker"
	"github.com/cabrank/cabrank/internal/redislink"
)

// Options of a Broker.
type Options struct {
	// Address is HOST:PORT, redis://USER:PASSWORD@HOST:PORT/DB, rediss:// with TLS, or
	// unix:///PATH.
	Address string
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
	client  rueidis.Client
	conn    string // its name in the keys of results
	out     *outlet
	feed    *feed
	pending pending

	ctx    context.Context //nolint:containedctx // ends its goroutines, in Close
	cancel context.CancelFunc
	ended  sync.WaitGroup
}

// cappedText takes a call unless as many wait as may. Keys: timeout key, list.
// Arguments: milliseconds, payload, cap.
const cappedText = `if redis.call('LLEN', KEYS[2]) >= tonumber(ARGV[3]) then
  return redis.error_reply('list capacity exceeded')
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[1])
return redis.call('LPUSH', KEYS[2], ARGV[2])`

// Open connects. Errors: one line that names the address.
func Open(options Options) (*Broker, error) {
	if options.Sweep == 0 {
		options.Sweep = 30 * time.Second
	}
	how, err := redislink.ClientOption(options.Address)
	if err != nil {
		return nil, err
	}
	where := strings.Join(how.InitAddress, ", ") // the address may have a password
	client, err := rueidis.NewClient(how)
	if err != nil {
		return nil, fmt.Errorf("redis at %s: %w", where, err)
	}
	b := &Broker{options: options, client: client, conn: newID(), out: newOutlet(client)}
	b.pending.calls = map[string]*waiter{}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	b.feed = &feed{broker: b, topics: map[broker.Topic]bool{}}
	if err := b.feed.open(); err != nil {
		b.cancel()
		client.Close()
		return nil, fmt.Errorf("redis at %s: %w", where, err)
	}
	b.ended.Go(func() { b.out.run(b.ctx) })
	b.ended.Go(b.takeResults)
	b.ended.Go(b.feed.run)
	b.ended.Go(b.sweeps)
	return b, nil
}

// Listen says where events go. The function must not block.
func (b *Broker) Listen(events func(broker.Topic, broker.Event)) { b.feed.listen(events) }

// Publish sends an event.
func (b *Broker) Publish(e broker.Event, done func(error)) {
	payload, err := json.Marshal(redislink.Event{ID: e.ID, Args: e.Args})
	if err != nil {
		done(err)
		return
	}
	b.out.add(len(payload), done, b.client.B().Publish().Channel(e.Channel).Message(string(payload)).Build())
}

// Subscribe is done when Redis has confirmed it. Without a connection it is refused.
func (b *Broker) Subscribe(topic broker.Topic, done func(error)) { b.feed.change(topic, true, done) }

// Unsubscribe is done when Redis has confirmed it.
func (b *Broker) Unsubscribe(topic broker.Topic, done func(error)) {
	b.feed.change(topic, false, done)
}

// Call asks for a function of whichever callee takes it.
func (b *Broker) Call(ctx context.Context, call broker.Call) {
	id := newID()
	payload, err := json.Marshal(redislink.Entry{Conn: b.conn, ID: id, URI: call.URI, Args: call.Args})
	if err != nil {
		call.Accepted(err)
		return
	}
	w := b.pending.add(ctx, id, call)
	ms := strconv.FormatInt(max(call.Timeout.Milliseconds(), 1), 10)
	timeoutKey, list := redislink.CallTimeoutKey(call.URI, id), redislink.CallsKey(call.URI)
	if b.options.CallCap > 0 {
		b.pushCapped(w, timeoutKey, list, ms, string(payload))
		return
	}
	b.out.add(len(payload), w.sent,
		b.client.B().Set().Key(timeoutKey).Value(ms).PxMilliseconds(max(call.Timeout.Milliseconds(), 1)).Build(),
		b.client.B().Lpush().Key(list).Element(string(payload)).Build())
}

// pushCapped runs the script by its text: Redis keeps it compiled by that.
func (b *Broker) pushCapped(w *waiter, timeoutKey, list, ms, payload string) {
	b.out.add(len(payload), w.sent, b.client.B().Eval().Script(cappedText).Numkeys(2).Key(timeoutKey, list).
		Arg(ms, payload, strconv.Itoa(b.options.CallCap)).Build())
}

// takeResults empties the list of results, and waits at it, on a connection of its own.
func (b *Broker) takeResults() {
	for wait := redislink.NewBackoff(); b.ctx.Err() == nil; wait.Pause(b.ctx) {
		conn, giveBack := b.client.Dedicate()
		stop := context.AfterFunc(b.ctx, conn.Close) // ends a pop that waits
		for last := time.Now(); b.pop(conn) == nil; last = time.Now() {
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
func (b *Broker) pop(conn rueidis.DedicatedClient) error {
	ctx, cancel := context.WithTimeout(b.ctx, 2*popSeconds*time.Second)
	defer cancel()
	popped, err := conn.Do(ctx, conn.B().Blmpop().Timeout(popSeconds).Numkeys(1).Key(redislink.ResultsKey(b.conn)).Right().Count(mostResults).Build()).ToArray()
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
		b.deliver(entries)
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
func (b *Broker) deliver(entries []string) {
	keys := make([]string, 0, len(entries))
	for _, entry := range entries {
		var result redislink.Entry
		if err := json.Unmarshal([]byte(entry), &result); err != nil {
			continue // of somebody who does not keep to the form: its caller's call expires
		}
		keys = append(keys, redislink.ResultTimeoutKey(b.conn, result.ID))
		b.pending.end(result.ID, result.Args, nil)
	}
	if len(keys) > 0 {
		b.out.add(0, func(error) {}, b.client.B().Del().Key(keys...).Build()) // they expire, if not
	}
}

// Waiting returns how many calls have not ended; Redis knows how many are taken.
func (b *Broker) Waiting() (calls int, bytes int64) { return b.pending.count(), 0 }

// Close refuses what comes and ends what waits.
func (b *Broker) Close() {
	b.cancel()
	b.client.Close()
	b.ended.Wait()
	b.pending.endAll(broker.ErrClosed)
}

// newID returns a UUID of version 4.
func newID() string {
	var r [16]byte
	rand.Read(r[:])
	r[6], r[8] = r[6]&0x0f|0x40, r[8]&0x3f|0x80
	h := hex.EncodeToString(r[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}
