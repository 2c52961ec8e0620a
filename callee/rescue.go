package callee

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/cabrank/cabrank/internal/broker"
	"github.com/cabrank/cabrank/internal/redislink"
)

const (
	// mostTries is how often a call is given back whose callee has died: it may be what
	// kills them.
	mostTries = 3

	// mostRescued is how many calls of a callee are given back in one go.
	mostRescued = 200

	// forgetAfter is when Redis forgets who was there, and has taken what, if nobody who
	// serves the URI is left to look after it.
	forgetAfter = 24 * time.Hour

	// leastSilence is the least of Options.DeadAfter.
	leastSilence = 250 * time.Millisecond
)

// giveBackText puts a call back to where it is taken from, if its time is not over and its
// callee is silent. Keys: life of its callee, its list, timeout key, calls, tries. Arguments:
// the entry, and how often that may happen; 0: it is the callee's own. Returns 0 if nothing
// was to do, -1 if it was given back, and how many milliseconds a call has left that was
// given back too often.
const giveBackText = `local most = tonumber(ARGV[2])
if most > 0 and redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
if redis.call('LREM', KEYS[2], -1, ARGV[1]) == 0 then return 0 end
local left = redis.call('PTTL', KEYS[3])
if left <= 0 then return 0 end
if most > 0 then
  local n = redis.call('INCR', KEYS[5])
  redis.call('PEXPIRE', KEYS[5], left)
  most = most - n
end
if most < 0 then
  redis.call('DEL', KEYS[3], KEYS[5])
  return left
end
redis.call('RPUSH', KEYS[4], ARGV[1])
return -1`

var errGivenUp = errors.New("every callee that had the call has died")

// often does something five times in the time after which a callee is dead, until ctx ends.
func (k *keeper) often(ctx context.Context, do func(context.Context)) {
	pause := k.callee.options.DeadAfter / 5
	for ctx.Err() == nil {
		do(ctx)
		timer := time.NewTimer(pause*3/4 + rand.N(pause/4))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
}

// live says that the callee lives: a silence of three fifths of DeadAfter, seen in two looks.
func (k *keeper) live(ctx context.Context) {
	c := k.callee
	ctx, cancel := context.WithTimeout(ctx, redislink.AnswerWithin)
	defer cancel()
	b := c.client.B()
	c.client.DoMulti(ctx,
		b.Set().Key(k.lifeKey(c.id)).Value("1").PxMilliseconds(c.options.DeadAfter.Milliseconds()*3/5).Build(),
		b.Sadd().Key(k.calleesKey()).Member(c.id).Build(),
		b.Pexpire().Key(k.calleesKey()).Milliseconds(forgetAfter.Milliseconds()).Build(),
		b.Pexpire().Key(k.takenKey(c.id)).Milliseconds(forgetAfter.Milliseconds()).Build())
}

// look gives back what others have who were silent in this look and the one before: when
// Redis was gone, all are for a moment.
func (k *keeper) look(ctx context.Context) {
	c := k.callee
	ctx, cancel := context.WithTimeout(ctx, redislink.AnswerWithin)
	defer cancel()
	ids, err := c.client.Do(ctx, c.client.B().Smembers().Key(k.calleesKey()).Build()).AsStrSlice()
	ids = slices.DeleteFunc(ids, func(id string) bool { return id == c.id })
	if err != nil || len(ids) == 0 {
		return
	}
	commands := make([]rueidis.Completed, len(ids))
	for i, id := range ids {
		commands[i] = c.client.B().Exists().Key(k.lifeKey(id)).Build()
	}
	silent := map[string]bool{}
	for i, answer := range c.client.DoMulti(ctx, commands...) {
		if n, err := answer.AsInt64(); err != nil || n > 0 {
			continue
		}
		if silent[ids[i]] = true; k.silent[ids[i]] {
			k.rescue(ctx, ids[i])
		}
	}
	k.silent = silent
}

// rescue gives back what a dead callee has, and forgets it when that is nothing any more.
func (k *keeper) rescue(ctx context.Context, id string) {
	c := k.callee
	entries, err := c.client.Do(ctx, c.client.B().Lrange().Key(k.takenKey(id)).Start(0).Stop(mostRescued-1).Build()).AsStrSlice()
	if err != nil {
		return
	}
	if len(entries) == 0 {
		c.client.Do(ctx, c.client.B().Srem().Key(k.calleesKey()).Member(id).Build())
		return
	}
	given := 0
	for i, left := range k.giveBack(ctx, id, entries, mostTries) {
		if left < 0 {
			given++
		} else if left > 0 {
			k.giveUp(entries[i], time.Duration(left)*time.Millisecond)
		}
	}
	c.counts.givenBack.Add(uint64(given))
	c.log().Warn("a callee is dead: its calls are given back", "uri", k.uri, "callee", id, "calls", given)
}

// giveBack asks Redis for it, of all entries at once. The oldest comes last, and is taken
// first again.
func (k *keeper) giveBack(ctx context.Context, id string, entries []string, most int) []int64 {
	c := k.callee
	commands := make([]rueidis.Completed, len(entries))
	for i, text := range entries {
		var e redislink.Entry
		_ = json.Unmarshal([]byte(text), &e) // what is no call has no time left, and goes
		commands[i] = c.client.B().Eval().Script(giveBackText).Numkeys(5).
			Key(k.lifeKey(id), k.takenKey(id), redislink.CallTimeoutKey(k.uri, e.ID), redislink.CallsKey(k.uri), k.triesKey(e.ID)).
			Arg(text, strconv.Itoa(most)).Build()
	}
	left := make([]int64, len(entries))
	for i, answer := range c.client.DoMulti(ctx, commands...) {
		left[i], _ = answer.AsInt64() // what was not given back is found by the next look
	}
	return left
}

// giveBackOwn gives back what the callee has itself: all, or only what it does not know of,
// which came when a connection broke.
func (k *keeper) giveBackOwn(ctx context.Context, all bool) {
	c := k.callee
	entries, err := c.client.Do(ctx, c.client.B().Lrange().Key(k.takenKey(c.id)).Start(0).Stop(-1).Build()).AsStrSlice()
	if err != nil {
		return
	}
	k.mu.Lock()
	entries = slices.DeleteFunc(entries, func(entry string) bool { return !all && k.has[entry] })
	k.mu.Unlock()
	if len(entries) > 0 {
		k.giveBack(ctx, c.id, entries, 0)
	}
}

// giveUp answers a call whose callees have all died.
func (k *keeper) giveUp(entry string, left time.Duration) {
	var e redislink.Entry
	if err := json.Unmarshal([]byte(entry), &e); err != nil {
		return
	}
	c := k.callee
	call := &Call{URI: k.uri, ID: e.ID, Conn: e.Conn, callee: c, entry: entry, deadline: time.Now().Add(left)}
	payload, err := json.Marshal(answer{Conn: e.Conn, ID: e.ID, URI: k.uri, Args: broker.ErrorResult(errGivenUp)})
	if err != nil {
		return
	}
	c.counts.taken.Add(1)
	c.counts.failed.Add(1)
	c.calls.Add(1)
	c.sender(redislink.ResultsKey(call.Conn)).add(stored{call: call, payload: string(payload)})
}
