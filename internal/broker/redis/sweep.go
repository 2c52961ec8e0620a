package redis

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/cabrank/cabrank/internal/redislink"
)

// sweepText takes an entry out of its list if its time is over. Keys: timeout key,
// list. Argument: the entry. The oldest are at the end.
const sweepText = `if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
return redis.call('LREM', KEYS[2], -1, ARGV[1])`

const (
	// pageKeys is how many keys Redis looks at in one go, mostPages how often it is asked in
	// a sweep: it may have many keys of others. With more than both together a sweep goes on
	// where the one before has come to.
	pageKeys, mostPages = 1000, 20
	// sweepPage is how many entries are looked at together.
	sweepPage = 200
	// sweepMost bounds what one sweep looks at of one list.
	sweepMost = 20_000
)

// sweeps has it done now and then, each server at another time.
func (b *Broker) sweeps() {
	for from := map[string]uint64{}; ; {
		timer := time.NewTimer(b.options.Sweep*3/4 + rand.N(b.options.Sweep/2))
		select {
		case <-timer.C:
			from = b.sweep(b.ctx, from)
		case <-b.ctx.Done():
			timer.Stop()
			return
		}
	}
}

// sweep takes out of lists what has expired: calls that nobody has taken, results of servers
// that are gone. It returns where the next one goes on, of each node. One that fails is left
// to that.
func (b *Broker) sweep(ctx context.Context, from map[string]uint64) (next map[string]uint64) {
	next = map[string]uint64{}
	for address, node := range b.calls.client.Nodes() {
		if b.calls.client.IsCluster() && !isMaster(ctx, node) {
			continue // it has what its master has
		}
		next[address] = b.sweepNode(ctx, node, from[address])
	}
	return next
}

// isMaster asks a node of a Cluster.
func isMaster(ctx context.Context, node rueidis.Client) bool {
	role, err := node.Do(ctx, node.B().Role().Build()).ToArray()
	if err != nil || len(role) == 0 {
		return false
	}
	is, err := role[0].ToString()
	return err == nil && is == "master"
}

// sweepNode goes through lists that a node has, from a cursor on and not beyond its keys,
// and returns where it has come to.
func (b *Broker) sweepNode(ctx context.Context, node rueidis.Client, cursor uint64) (next uint64) {
	for range mostPages {
		page, err := node.Do(ctx, node.B().Scan().Cursor(cursor).Match("juggler:*:{*}").Count(pageKeys).Type("list").Build()).AsScanEntry()
		if err != nil {
			return cursor
		}
		cursor = page.Cursor
		for _, list := range page.Elements {
			if err := b.sweepKey(ctx, list); err != nil {
				return cursor
			}
		}
		if cursor == 0 {
			break
		}
	}
	return cursor
}

// sweepKey sweeps a list of one of the kinds that there are.
func (b *Broker) sweepKey(ctx context.Context, list string) error {
	for _, kind := range []string{"juggler:calls:", "juggler:results:"} {
		if !strings.HasPrefix(list, kind+"{") || b.calls.client.IsCluster() && strings.HasPrefix(list, kind+"{}") {
			continue // it is another's; or its timeout keys are elsewhere, and nobody can have put it there
		}
		return b.sweepList(ctx, kind, list)
	}
	return nil
}

// sweepList goes through a list from its end, a page at a time.
func (b *Broker) sweepList(ctx context.Context, kind, list string) error {
	for kept, seen := int64(0), 0; seen < sweepMost; {
		entries, err := b.calls.client.Do(ctx, b.calls.client.B().Lrange().Key(list).Start(-kept-sweepPage).Stop(-kept-1).Build()).AsStrSlice()
		if err != nil || len(entries) == 0 {
			return err
		}
		seen += len(entries)
		removed, err := b.sweepEntries(ctx, kind, list, entries)
		if err != nil {
			return err
		}
		kept += int64(len(entries)) - removed
		if len(entries) < sweepPage {
			return nil
		}
	}
	return nil
}

// sweepEntries returns how many were taken out.
func (b *Broker) sweepEntries(ctx context.Context, kind, list string, entries []string) (removed int64, err error) {
	var commands []rueidis.Completed
	for _, entry := range entries {
		var e redislink.Entry
		if err := json.Unmarshal([]byte(entry), &e); err != nil {
			continue // nothing of ours
		}
		timeoutKey := kind + "timeout:" + strings.TrimPrefix(list, kind) + ":" + e.ID
		commands = append(commands, b.calls.client.B().Eval().Script(sweepText).Numkeys(2).Key(timeoutKey, list).Arg(entry).Build())
	}
	for _, answer := range b.calls.client.DoMulti(ctx, commands...) {
		n, err := answer.AsInt64()
		if err != nil {
			return removed, err
		}
		removed += n
	}
	return removed, nil
}
