//go:build real || soak

package socket_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	redigo "github.com/gomodule/redigo/redis"

	"github.com/cabrank/cabrank/callee"
	"github.com/cabrank/cabrank/internal/broker/redis"
	"github.com/cabrank/cabrank/internal/socket"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/internal/testkit/exchange"
	"github.com/cabrank/cabrank/internal/testkit/redisd"
	"github.com/cabrank/cabrank/test/oldjuggler"
)

// dump returns all that is in a Redis, sorted by key: the entries of lists from the
// newest to the oldest, and of keys that expire the seconds that are left, rounded up.
func dump(t *testing.T, conn redigo.Conn) string {
	t.Helper()
	keys, err := redigo.Strings(conn.Do("KEYS", "*"))
	testkit.Must(t, err)
	slices.Sort(keys)
	var b strings.Builder
	for _, key := range keys {
		kind, _ := redigo.String(conn.Do("TYPE", key))
		left, _ := redigo.Int64(conn.Do("PTTL", key))
		life := "for ever"
		if left >= 0 {
			life = fmt.Sprintf("%d s", (left+999)/1000)
		}
		fmt.Fprintf(&b, "%s: %s, %s\n", key, kind, life)
		if value, err := redigo.String(conn.Do("GET", key)); err == nil {
			fmt.Fprintf(&b, "  %s\n", value)
		}
		values, _ := redigo.Strings(conn.Do("LRANGE", key, 0, -1))
		for _, value := range values {
			fmt.Fprintf(&b, "  %s\n", value)
		}
	}
	return b.String()
}

// golden holds text against a file of testdata, in which $a is id.
func golden(t *testing.T, file, text string, id oldjuggler.UUID) {
	t.Helper()
	expected := testkit.ReadFile(t, "testdata/"+file)
	testkit.Want(t, exchange.Match(string(expected), text, map[string]string{"$a": string(id)}),
		"%s\n got:\n%s\nwant:\n%s", file, text, expected)
}

func dialRedis(t testing.TB, server *redisd.Server) redigo.Conn {
	t.Helper()
	conn, err := server.Dial()
	testkit.Must(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}

// What a call is in Redis, byte for byte, by an old server and by ours; but for its id, which
// ours makes itself.
func TestServerKeys(t *testing.T) {
	testkit.CheckLeaks(t)
	ours := func(more redis.Options) func(*redisd.Server) string {
		return func(server *redisd.Server) string {
			url, _ := startNew(t, server, socket.Options{}, more)
			return url
		}
	}
	for name, start := range map[string]func(*redisd.Server) string{
		"old":   func(server *redisd.Server) string { return startOld(t, server, oldjuggler.Options{}) },
		"plain": ours(redis.Options{}), "capped": ours(redis.Options{CallCap: 10}),
	} {
		server := redisd.Start(t)
		id, err := dialOld(t, start(server)).Call("test.x", map[string]any{"b": []int{1, 2}, "a": "<>"}, 5*time.Second)
		testkit.Must(t, err)
		text := await(t, server, "juggler:calls:{")
		if _, after, _ := strings.Cut(text, `"msg_uuid":"`); name != "old" {
			id = oldjuggler.UUID(after[:36])
		}
		golden(t, "call.txt", text, id)
	}
}

// A result is stored for the time that the call has left, under the ids of the call, by an
// old callee and by ours.
func TestCalleeKeys(t *testing.T) {
	testkit.CheckLeaks(t)
	old, ours := redisd.Start(t), redisd.Start(t)
	startOldCallee(t, old)
	startCallee(t, ours, callee.Options{}, nil)
	for _, server := range []*redisd.Server{old, ours} {
		id := push(t, server, "test.echo", `"<hi>"`, 5*time.Second)
		golden(t, "result.txt", await(t, server, "results:{"), id)
	}
}

func TestOldServerPublishes(t *testing.T) {
	testkit.CheckLeaks(t)
	server := redisd.Start(t)
	pubsub := redigo.PubSubConn{Conn: dialRedis(t, server)}
	testkit.Must(t, pubsub.Subscribe("news"))
	if _, ok := pubsub.Receive().(redigo.Subscription); !ok {
		t.Fatal("not subscribed")
	}
	client := dialOld(t, startOld(t, server, oldjuggler.Options{}))
	id, err := client.Pub("news", []string{"<", "x"})
	testkit.Must(t, err)
	got, ok := pubsub.ReceiveWithTimeout(5 * time.Second).(redigo.Message)
	testkit.Need(t, ok, "nothing was published")
	golden(t, "event.txt", got.Channel+"\n"+string(got.Data)+"\n", id)
	testkit.Equal(t, dump(t, dialRedis(t, server)), "", "an event leaves in Redis")
}

// commandCounts returns how often each command was run by clients and scripts.
func commandCounts(t testing.TB, conn redigo.Conn) map[string]int {
	t.Helper()
	info, err := redigo.String(conn.Do("INFO", "commandstats"))
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
