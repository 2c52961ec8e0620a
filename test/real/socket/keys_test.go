//go:build real || soak

package socket_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/internal/testkit/exchange"
	"github.com/cabrank/cabrank/internal/testkit/redisd"
	"github.com/cabrank/cabrank/test/oldjuggler"
	"github.com/cabrank/cabrank/test/real/harness"
)

// dump returns all that is in a Redis, sorted by key: the entries of lists from the
// newest to the oldest, and of keys that expire the seconds that are left, rounded up.
func dump(t *testing.T, conn redis.Conn) string {
	t.Helper()
	keys, err := redis.Strings(conn.Do("KEYS", "*"))
	testkit.Must(t, err)
	slices.Sort(keys)
	var b strings.Builder
	for _, key := range keys {
		kind, _ := redis.String(conn.Do("TYPE", key))
		left, _ := redis.Int64(conn.Do("PTTL", key))
		life := "for ever"
		if left >= 0 {
			life = fmt.Sprintf("%d s", (left+999)/1000)
		}
		fmt.Fprintf(&b, "%s: %s, %s\n", key, kind, life)
		if value, err := redis.String(conn.Do("GET", key)); err == nil {
			fmt.Fprintf(&b, "  %s\n", value)
		}
		values, _ := redis.Strings(conn.Do("LRANGE", key, 0, -1))
		for _, value := range values {
			fmt.Fprintf(&b, "  %s\n", value)
		}
	}
	return b.String()
}

// golden holds text against a file of testdata, in which $a is id.
func golden(t *testing.T, file, text string, id oldjuggler.UUID) {
	t.Helper()
	expected, err := os.ReadFile("testdata/" + file)
	testkit.Must(t, err)
	if !exchange.Match(string(expected), text, map[string]string{"$a": string(id)}) {
		t.Errorf("%s\n got:\n%s\nwant:\n%s", file, text, expected)
	}
}

func dialRedis(t *testing.T, server *redisd.Server) redis.Conn {
	t.Helper()
	conn, err := server.Dial()
	testkit.Must(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}

// What a call, its result and an event are in Redis, byte for byte.
func TestOldServerKeys(t *testing.T) {
	testkit.CheckLeaks(t)
	server := redisd.Start(t)
	conn := dialRedis(t, server)
	client := dialOld(t, startOld(t, server, oldjuggler.Options{}))
	id, err := client.Call("test.x", map[string]any{"b": []int{1, 2}, "a": "<>"}, 5*time.Second)
	testkit.Must(t, err)
	testkit.Eventually(t, harness.Patience, "the call", func() bool { return dump(t, conn) != "" })
	golden(t, "call.txt", dump(t, conn), id)
}

// A result is stored for the time that the call has left, under the ids of the call.
func TestOldCalleeKeys(t *testing.T) {
	testkit.CheckLeaks(t)
	server := redisd.Start(t)
	startOldCallee(t, server)
	conn, caller, id := dialRedis(t, server), oldjuggler.NewUUID(), oldjuggler.NewUUID()
	payload, _ := json.Marshal(map[string]any{"conn_uuid": caller, "msg_uuid": id, "uri": "test.echo", "args": "<hi>"})
	for _, command := range [][]any{
		{"SET", "juggler:calls:timeout:{test.echo}:" + string(id), 5000, "PX", 5000},
		{"LPUSH", "juggler:calls:{test.echo}", payload},
	} {
		if _, err := conn.Do(command[0].(string), command[1:]...); err != nil {
			t.Fatal(err)
		}
	}
	testkit.Eventually(t, harness.Patience, "the result", func() bool { return strings.Contains(dump(t, conn), "results") })
	golden(t, "result.txt", dump(t, conn), id)
}

func TestOldServerPublishes(t *testing.T) {
	testkit.CheckLeaks(t)
	server := redisd.Start(t)
	pubsub := redis.PubSubConn{Conn: dialRedis(t, server)}
	testkit.Must(t, pubsub.Subscribe("news"))
	if _, ok := pubsub.Receive().(redis.Subscription); !ok {
		t.Fatal("not subscribed")
	}
	client := dialOld(t, startOld(t, server, oldjuggler.Options{}))
	id, err := client.Pub("news", []string{"<", "x"})
	testkit.Must(t, err)
	got, ok := pubsub.ReceiveWithTimeout(5 * time.Second).(redis.Message)
	if !ok {
		t.Fatal("nothing was published")
	}
	golden(t, "event.txt", got.Channel+"\n"+string(got.Data)+"\n", id)
	if left := dump(t, dialRedis(t, server)); left != "" {
		t.Errorf("an event leaves in Redis:\n%s", left)
	}
}

// commandCounts returns how often each command was run by clients and scripts.
func commandCounts(t *testing.T, conn redis.Conn) map[string]int {
	t.Helper()
	info, err := redis.String(conn.Do("INFO", "commandstats"))
	testkit.Must(t, err)
	counts := map[string]int{}
	for line := range strings.Lines(info) {
		if name, rest, ok := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":calls="); ok {
			number, _, _ := strings.Cut(rest, ",")
			counts[name], _ = strconv.Atoi(number)
		}
	}
	return counts
}
