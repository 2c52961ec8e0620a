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
// list. Argument: the entry. The oldest entries are at the end.
const sweepText = `if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
return redis.call('LREM', KEYS[2], -1, ARGV[1])`

const (
	// pageKeys is how many keys Redis scans for one question, and mostPages how many
	// questions a sweep asks: Redis may have many keys of others. The next sweep goes on
	// where the last one ended.
	pageKeys, mostPages = 1000, 20
	// sweepPage is how many entries are checked together.
	sweepPage = 200
	// sweepMost bounds the entries of one list that a sweep checks.
	sweepMost = 20_000
)

// sweeps runs a sweep now and then, each server at another time.
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

// sweep takes expired entries out of lists: calls that no callee has taken, and results of
// servers that are gone. It returns the cursor of each node for the next sweep, which also
// takes up a node that fails.
func (b *Broker) sweep(ctx context.Context, from map[string]uint64) (next map[string]uint64) {
	next = map[string]uint64{}
	for address, node := range b.calls.client.Nodes() {
		if b.calls.client.IsCluster() && !isMaster(ctx, node) {
			continue // a replica has the keys of its master
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

// sweepNode sweeps lists of a node from a cursor on, at most to the end of its keys, and
// returns the next cursor.
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

// sweepKey sweeps a list of calls or results.
func (b *Broker) sweepKey(ctx context.Context, list string) error {
	for _, kind := range []string{"juggler:calls:", "juggler:results:"} {
		if !strings.HasPrefix(list, kind+"{") || b.calls.client.IsCluster() && strings.HasPrefix(list, kind+"{}") {
			continue // not a list of this protocol; with {} its timeout keys would be in another slot
		}
		return b.sweepList(ctx, kind, list)
	}
	return nil
}

// sweepList sweeps a list from its end, one page at a time.
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

// sweepEntries takes out expired entries and returns their number.
func (b *Broker) sweepEntries(ctx context.Context, kind, list string, entries []string) (removed int64, err error) {
	var commands []rueidis.Completed
	for _, entry := range entries {
		var e redislink.Entry
		if err := json.Unmarshal([]byte(entry), &e); err != nil {
			continue // not an entry of this protocol
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
