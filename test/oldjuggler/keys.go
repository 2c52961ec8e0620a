package oldjuggler

import (
	"encoding/json"
	"time"

	"github.com/gomodule/redigo/redis"
)

// Keys in Redis. The braces are part of them: they are hash tags of a Cluster.

func callsKey(uri string) string { return "juggler:calls:{" + uri + "}" }

func callTimeoutKey(uri string, id UUID) string {
	return "juggler:calls:timeout:{" + uri + "}:" + string(id)
}

func resultsKey(conn UUID) string { return "juggler:results:{" + string(conn) + "}" }

func resultTimeoutKey(conn, id UUID) string {
	return "juggler:results:timeout:{" + string(conn) + "}:" + string(id)
}

// stored is what is in both lists: a call, or its result with the same ids.
type stored struct {
	Conn UUID            `json:"conn_uuid"`
	ID   UUID            `json:"msg_uuid"`
	URI  string          `json:"uri"`
	Args json.RawMessage `json:"args,omitempty"`
}

// published is what goes out on a channel.
type published struct {
	ID   UUID            `json:"msg_uuid"`
	Args json.RawMessage `json:"args,omitempty"`
}

// Keys: timeout key, list. Arguments: milliseconds, payload, cap (0: none). An
// entry too much is taken back, its timeout key is not.
const pushText = `local ms, payload, most = ARGV[1], ARGV[2], tonumber(ARGV[3])
redis.call('SET', KEYS[1], ms, 'PX', ms)
local n = redis.call('LPUSH', KEYS[2], payload)
if most > 0 and n > most then
  redis.call('LTRIM', KEYS[2], n - most, -1)
  return redis.error_reply('list capacity exceeded')
end
return n`

// Key: timeout key. Returns the milliseconds that were left, nothing or less if none.
const claimText = `local left = redis.call('PTTL', KEYS[1])
redis.call('DEL', KEYS[1])
return left`

// scripts are the two that each program loads for itself.
type scripts struct{ push, claim *redis.Script }

func newScripts() scripts {
	return scripts{push: redis.NewScript(2, pushText), claim: redis.NewScript(1, claimText)}
}

// newPool asks every connection that it gives out whether it still lives, which costs
// a round trip.
func newPool(dial func() (redis.Conn, error)) *redis.Pool {
	return &redis.Pool{
		Dial: dial, MaxIdle: 1000, MaxActive: 1000, Wait: true, IdleTimeout: 30 * time.Second,
		TestOnBorrow: func(c redis.Conn, _ time.Time) error {
			_, err := c.Do("PING")
			return err
		},
	}
}

// put stores an entry that is worth something for so long.
func (s scripts) put(pool *redis.Pool, timeoutKey, list string, ms int64, entry stored, most int) error {
	payload, err := json.Marshal(entry)
	if err != nil {
		return err
	}
	conn := pool.Get()
	defer conn.Close()
	_, err = s.push.Do(conn, timeoutKey, list, ms, payload, most)
	return err
}

// left returns how long an entry that was taken is still worth something.
func (s scripts) left(pool *redis.Pool, timeoutKey string) (time.Duration, error) {
	conn := pool.Get()
	defer conn.Close()
	ms, err := redis.Int64(s.claim.Do(conn, timeoutKey))
	return time.Duration(ms) * time.Millisecond, err
}

// pop waits for the next entry of any of the lists.
func pop(conn redis.Conn, lists ...string) (entry stored, err error) {
	args := redis.Args{}.AddFlat(lists).Add(0)
	reply, err := redis.ByteSlices(redis.DoWithTimeout(conn, 0, "BRPOP", args...))
	if err == nil {
		err = json.Unmarshal(reply[1], &entry)
	}
	return entry, err
}
