package callee

import (
	"context"
	"slices"
	"time"

	"github.com/redis/rueidis"

	"github.com/cabrank/cabrank/internal/redislink"
)

const (
	// popSeconds bounds a pop that waits, so that a connection that is dead is noticed.
	popSeconds = 5

	// mostPopped is how many calls are taken at once.
	mostPopped = 128

	// atOnce is how soon a pop has to return for the next one to wait, gather long, for
	// calls to gather: each wakes two processes, which costs more than the pop. Who calls
	// alone does not wait.
	atOnce = 200 * time.Microsecond
	gather = 300 * time.Microsecond
)

// group takes the calls of functions whose lists one command can pop.
type group struct {
	callee *Callee
	uris   []string
	next   int // the one to be asked first: the one behind that which had calls last
}

func (g *group) functions() int { return len(g.uris) }

// stopKey is a list that is never used but to end a pop that waits.
func (g *group) stopKey() string { return "juggler.1:stop:{" + g.uris[0] + "}:" + g.callee.id }

// wake ends a pop that waits: one that is cut may have calls on the way.
func (g *group) wake(ctx context.Context) {
	client := g.callee.client
	client.DoMulti(ctx, client.B().Lpush().Key(g.stopKey()).Element("").Build(),
		client.B().Pexpire().Key(g.stopKey()).Milliseconds(2*popSeconds*1000).Build())
}

// clean removes what wake has left.
func (g *group) clean(ctx context.Context) {
	g.callee.client.Do(ctx, g.callee.client.B().Del().Key(g.stopKey()).Build())
}

// take pops as many calls of one URI as there are places, and puts back what is more: those
// of another group may have become busy meanwhile.
func (g *group) take(conn rueidis.DedicatedClient, most int) ([]*Call, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*popSeconds*time.Second)
	defer cancel()
	keys := make([]string, 0, len(g.uris)+1)
	for i := range g.uris {
		keys = append(keys, redislink.CallsKey(g.uris[(g.next+i)%len(g.uris)]))
	}
	keys = append(keys, g.stopKey())
	popped, err := conn.Do(ctx, conn.B().Blmpop().Timeout(popSeconds).Numkeys(int64(len(keys))).Key(keys...).
		Right().Count(int64(min(most, mostPopped))).Build()).ToArray()
	if rueidis.IsRedisNil(err) {
		return nil, nil // nothing came
	}
	if err != nil || len(popped) != 2 {
		return nil, err
	}
	list, _ := popped[0].ToString()
	entries, err := popped[1].AsStrSlice()
	at := slices.Index(keys, list)
	if err != nil || at < 0 || at >= len(g.uris) {
		return nil, err // or it is the word to stop
	}
	at = (g.next + at) % len(g.uris)
	g.next = (at + 1) % len(g.uris)
	n := g.callee.places.take(len(entries))
	calls := g.callee.read(g.uris[at], entries[:n])
	if more := entries[n:]; len(more) > 0 {
		slices.Reverse(more) // the oldest comes last, where it is taken from
		err = conn.Do(ctx, conn.B().Rpush().Key(list).Element(more...).Build()).Error()
	}
	return calls, err
}

// claim asks how much time calls have left, and has their timeout keys deleted.
func (g *group) claim(conn rueidis.DedicatedClient, calls []*Call) error {
	keys := make([]string, len(calls))
	for i, call := range calls {
		keys[i] = redislink.CallTimeoutKey(call.URI, call.ID)
	}
	return readTimes(conn, calls, conn.B().Del().Key(keys...).Build())
}
