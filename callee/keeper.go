package callee

import (
	"context"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/cabrank/cabrank/internal/redislink"
)

// mostAsked is how many calls are taken behind the one that was waited for.
const mostAsked = 32

// keeper takes the calls of one function that is to run AtLeastOnce: into a list of its own,
// where they stay until they are answered. What it has when it dies others give back.
type keeper struct {
	callee *Callee
	uri    string
	asked  int             // how many more were there the last time
	fresh  bool            // the connection is new: calls may have been moved that were never seen
	silent map[string]bool // others that were, at the last look

	mu   sync.Mutex
	conn rueidis.DedicatedClient // of a take that waits
	has  map[string]bool         // entries that have not ended
}

func newKeeper(c *Callee, uri string) *keeper {
	return &keeper{callee: c, uri: uri, has: map[string]bool{}}
}

func (k *keeper) functions() int { return 1 }

// Keys of a URI. The braces are hash tags, as those of its calls.

func (k *keeper) takenKey(id string) string { return "juggler.1:taken:{" + k.uri + "}:" + id }
func (k *keeper) lifeKey(id string) string  { return "juggler.1:callee:{" + k.uri + "}:" + id }
func (k *keeper) calleesKey() string        { return "juggler.1:callees:{" + k.uri + "}" }
func (k *keeper) triesKey(call string) string {
	return "juggler.1:tries:{" + k.uri + "}:" + call
}

// take moves the oldest calls.
func (k *keeper) take(conn rueidis.DedicatedClient, most int) ([]*Call, error) {
	if !k.use(conn) {
		return nil, nil // the callee stops
	}
	entries, err := k.move(conn, most)
	k.use(nil)
	k.fresh = err != nil
	k.mu.Lock()
	for _, entry := range entries {
		k.has[entry] = true
	}
	k.mu.Unlock()
	n := k.callee.places.take(len(entries))
	if n < len(entries) { // another function has become busy meanwhile
		k.mu.Lock()
		for _, entry := range entries[n:] {
			delete(k.has, entry)
		}
		k.mu.Unlock()
		ctx, cancel := context.WithTimeout(context.Background(), redislink.AnswerWithin)
		defer cancel()
		k.giveBackOwn(ctx, false)
	}
	return k.callee.read(k.uri, entries[:n]), err
}

// use notes the connection that wake has to close; not if it was there before.
func (k *keeper) use(conn rueidis.DedicatedClient) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.conn = conn
	return conn == nil || k.callee.taking.Err() == nil
}

// move waits for a call, and takes those behind it. Entries beside an error are moved, too.
func (k *keeper) move(conn rueidis.DedicatedClient, most int) (entries []string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*popSeconds*time.Second)
	defer cancel()
	if k.fresh {
		k.giveBackOwn(ctx, false)
	}
	from, to := redislink.CallsKey(k.uri), k.takenKey(k.callee.id)
	entry, err := conn.Do(ctx, conn.B().Blmove().Source(from).Destination(to).Right().Left().Timeout(popSeconds).Build()).ToString()
	if rueidis.IsRedisNil(err) {
		return nil, nil // nothing came
	}
	if err != nil {
		return nil, err
	}
	entries = append(entries, entry)
	if n := min(k.asked+1, most-1, mostAsked); n > 0 {
		commands := make([]rueidis.Completed, n)
		for i := range commands {
			commands[i] = conn.B().Lmove().Source(from).Destination(to).Right().Left().Build()
		}
		for _, answer := range conn.DoMulti(ctx, commands...) {
			entry, err := answer.ToString()
			if rueidis.IsRedisNil(err) {
				continue // others may have come behind it, while the rest of these was on its way
			}
			if err != nil {
				return entries, err
			}
			entries = append(entries, entry)
		}
	}
	k.asked = 2 * (len(entries) - 1)
	return entries, nil
}

// claim asks how much time calls have left. Their timeout keys stay.
func (k *keeper) claim(conn rueidis.DedicatedClient, calls []*Call) error {
	return readTimes(conn, calls)
}

// forget is what remains to be done when a call has ended.
func (k *keeper) forget(call *Call) []rueidis.Completed {
	b := k.callee.client.B()
	return []rueidis.Completed{
		b.Lrem().Key(k.takenKey(k.callee.id)).Count(1).Element(call.entry).Build(),
		b.Del().Key(redislink.CallTimeoutKey(k.uri, call.ID), k.triesKey(call.ID)).Build(),
	}
}

// forgot is told that it was done.
func (k *keeper) forgot(call *Call) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.has, call.entry)
}

// wake closes the connection: a call that is on its way is in the list.
func (k *keeper) wake(context.Context) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.conn != nil {
		k.conn.Close()
	}
}

// clean leaves: what was cut is for others at once.
func (k *keeper) clean(ctx context.Context) {
	k.giveBackOwn(ctx, true)
	b := k.callee.client.B()
	k.callee.client.DoMulti(ctx, b.Srem().Key(k.calleesKey()).Member(k.callee.id).Build(), b.Del().Key(k.lifeKey(k.callee.id)).Build())
}
