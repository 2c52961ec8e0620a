//go:build real || soak

package socket_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	redigo "github.com/gomodule/redigo/redis"

	"github.com/cabrank/cabrank/callee"
	"github.com/cabrank/cabrank/internal/broker"
	"github.com/cabrank/cabrank/internal/broker/redis"
	"github.com/cabrank/cabrank/internal/socket"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/internal/testkit/redisd"
	"github.com/cabrank/cabrank/test/oldjuggler"
	"github.com/cabrank/cabrank/test/real/harness"
)

// Over a Cluster it keeps to all that it does over one Redis.
func TestClusterBroker(t *testing.T) {
	all, c := t, (*redisd.Cluster)(nil)
	suite(t, true, func(t *testing.T) (redis.Options, dialer, func()) {
		t.Helper()
		if c == nil { // they share one, which takes a while to start
			c = redisd.StartCluster(all, 3, 0)
		}
		c.Flush(t)
		return redis.Options{Address: c.URL()}, c, func() { c.Kill(); c = nil }
	})
}

// Over Sentinels, too.
func TestSentinelBroker(t *testing.T) {
	all, s := t, (*redisd.Set)(nil)
	suite(t, false, func(t *testing.T) (redis.Options, dialer, func()) {
		t.Helper()
		if s == nil {
			s = redisd.StartSet(all, 1)
		}
		s.Primary.Flush(t)
		return redis.Options{Address: s.URL()}, s.Primary, func() { s.Kill(); s = nil }
	})
}

// Calls and events on a Redis each.
func TestApartBroker(t *testing.T) {
	calls, events := redisd.Start(t), redisd.Start(t)
	suite(t, false, func(t *testing.T) (redis.Options, dialer, func()) {
		t.Helper()
		calls.Flush(t)
		return redis.Options{Address: "unix://" + calls.Socket, Events: "unix://" + events.Socket}, calls, func() {
			calls.Kill()
			events.Kill()
			t.Cleanup(func() {
				testkit.Must(t, errors.Join(calls.Restart(), events.Restart()))
			})
		}
	})
}

// With TLS, certificates of its own on both sides, a database, and a user who may do no
// more than docs/socket-redis.md says.
func TestSecureBroker(t *testing.T) {
	suite(t, false, func(t *testing.T) (redis.Options, dialer, func()) {
		t.Helper()
		server, address := startSecure(t)
		return redis.Options{Address: address, Sweep: 50 * time.Millisecond}, server, server.Kill
	})
}

// startSecure starts a Redis with TLS and a user named me.
func startSecure(t *testing.T) (server second, address string) {
	t.Helper()
	s, files := redisd.StartTLS(t)
	addUser(t, s, "me", "socket-redis.md", "cabrank")
	_, port, _ := strings.Cut(s.Address, ":")
	return second{s}, fmt.Sprintf("rediss://me:secret@localhost:%s/1?cacert=%s&cert=%s&key=%s", port, files.CA, files.Cert, files.Key)
}

// addUser adds a user who may do what a page says of one.
func addUser(t *testing.T, server *redisd.Server, name, page, of string) {
	t.Helper()
	document, err := os.ReadFile("../../../docs/" + page)
	testkit.Must(t, err)
	rules := regexp.MustCompile(`(?m)^ACL SETUSER ` + of + ` on >PASSWORD (.*)$`).FindSubmatch(document)
	testkit.Need(t, rules != nil, "docs/%s says nothing of a user", page)
	_, err = dialRedis(t, server).Do("ACL", redigo.Args{"SETUSER", name, "on", ">secret"}.AddFlat(strings.Fields(string(rules[1])))...)
	testkit.Must(t, err)
}

// A callee with TLS, and as a user who may do no more than docs/socket-redis.md says: calls that are
// kept and others, a stream, and what a dead callee has left.
func TestCalleeSecure(t *testing.T) {
	testkit.CheckLeaks(t)
	server, address := startSecure(t)
	addUser(t, server.Server, "callee", "socket-redis.md", "callee")
	conn, err := server.Dial()
	testkit.Must(t, err)
	defer conn.Close()
	call := func(list, timeoutKey, id string) {
		entry := fmt.Sprintf(`{"conn_uuid":%q,"msg_uuid":%q,"uri":"x","args":1,"several":true}`, caller, id)
		for _, command := range [][]any{{"SET", timeoutKey + id, 60000, "PX", 60000}, {"LPUSH", list, entry}, {"SET", "juggler.1:credit:{kept}:" + id, 1, "PX", 60000}} {
			_, err := conn.Do(command[0].(string), command[1:]...)
			testkit.Must(t, err)
		}
	}
	call("juggler:calls:{plain}", "juggler:calls:timeout:{plain}:", "a")
	call("juggler:calls:{kept}", "juggler:calls:timeout:{kept}:", "b")
	call("juggler.1:taken:{kept}:dead", "juggler:calls:timeout:{kept}:", "c")
	_, err = conn.Do("SADD", "juggler.1:callees:{kept}", "dead")
	testkit.Must(t, err)
	c := runCallee(t, callee.Options{Redis: strings.Replace(address, "me:", "callee:", 1), DeadAfter: time.Millisecond}, func(c *callee.Callee) {
		callee.Handle(c, "plain", func(context.Context, int) (string, error) { return "plain", nil })
		callee.HandleStream(c, "kept", func(_ context.Context, n int, send func(int) error) error { return send(n) }, callee.AtLeastOnce())
	})
	testkit.Eventually(t, harness.Patience, "all results", func() bool {
		n, _ := redigo.Int(conn.Do("LLEN", "juggler:results:{"+caller+"}"))
		return n == 5
	})
	testkit.Eventually(t, harness.Patience, "it to listen, and the dead to be forgotten", func() bool {
		n, _ := redigo.Int(conn.Do("PUBLISH", "juggler.1:words:plain", "{}"))
		left, _ := redigo.Int(conn.Do("SCARD", "juggler.1:callees:{kept}"))
		return n == 1 && left == 1
	})
	testkit.Must(t, c.Shutdown(t.Context()))
	log, err := redigo.Values(conn.Do("ACL", "LOG"))
	testkit.Want(t, err == nil && len(log) == 0, "%q %v", log, err)
	text := dump(t, conn)
	testkit.Want(t, !strings.Contains(text, "juggler.1:taken") && !strings.Contains(text, "juggler.1:callee"), "Redis has\n%s", text)
}

// second is the database 1 of a Redis.
type second struct{ *redisd.Server }

func (s second) Dial() (redigo.Conn, error) {
	conn, err := s.Server.Dial()
	if err == nil {
		_, err = conn.Do("SELECT", 1)
	}
	return conn, err
}

// That user can sweep, too, and what is wrong is one line without a password.
func TestSecureSweep(t *testing.T) {
	server, address := startSecure(t)
	conn, err := server.Dial()
	testkit.Must(t, err)
	defer conn.Close()
	_, err = conn.Do("LPUSH", "juggler:calls:{dead}", `{"conn_uuid":"c","msg_uuid":"m","uri":"dead"}`)
	testkit.Must(t, err)
	openBroker(t, nil, redis.Options{Address: address, Sweep: 20 * time.Millisecond})
	testkit.Eventually(t, harness.Patience, "the sweep", func() bool { return dump(t, conn) == "" })
	for old, fresh := range map[string]string{"me:secret": "me:sesame", "cacert=": "cacert=/nowhere", "rediss:": "redis:"} {
		_, err := redis.Open(redis.Options{Address: strings.Replace(address, old, fresh, 1)})
		if err == nil || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "sesame") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", fresh, err)
		}
	}
}

// Callees of ours in a Cluster: functions of all nodes, fewer workers than slots, and what is
// popped too much given back; some are kept. A master that is silent, or killed, loses its own
// calls alone.
func TestCalleeCluster(t *testing.T) {
	testkit.CheckLeaks(t)
	cluster := redisd.StartCluster(t, 3, 1)
	var most, now, ran atomic.Int32
	work := func(_ context.Context, call *callee.Call) (any, error) {
		most.Store(max(most.Load(), now.Add(1)))
		defer now.Add(-1)
		ran.Add(1)
		return call.URI, nil
	}
	c := runCallee(t, callee.Options{Redis: cluster.URL(), Workers: 8}, func(c *callee.Callee) {
		for i := range 12 {
			c.HandleCalls(fmt.Sprintf("u%d", i), work)
			c.HandleCalls(fmt.Sprintf("kept%d", i), work, callee.AtLeastOnce())
		}
	})
	url, _ := startNew(t, nil, socket.Options{}, redis.Options{Address: cluster.URL()})
	client := dialOld(t, url)
	ask := func(timeout time.Duration) (answered int) {
		for i := range 24 {
			for range 10 {
				_, err := client.Call([]string{"u", "kept"}[i%2]+strconv.Itoa(i/2), i, timeout)
				testkit.Want(t, err == nil, "%v", err)
			}
		}
		for range 240 {
			if in := client.ended(); in.Type == oldjuggler.Res && string(in.Args) == `"`+in.URI+`"` {
				answered++
			}
		}
		return answered
	}
	if n := ask(20 * time.Second); n != 240 || ran.Load() != 240 || most.Load() > 8 {
		t.Errorf("%d of 240 answered, %d ran, %d at once", n, ran.Load(), most.Load())
	}
	testkit.Must(t, syscall.Kill(cluster.Masters[2].PID(), syscall.SIGSTOP))
	ask(time.Second) // of one socket: what it gets waits for the silent master, in order
	if n := c.Stats().Answered - 240; n < 80 {
		t.Errorf("%d of 240 answered while one of three masters is silent", n)
	}
	testkit.Must(t, syscall.Kill(cluster.Masters[2].PID(), syscall.SIGCONT))
	cluster.Masters[0].Kill()
	testkit.Eventually(t, harness.Patience, "all to be answered again", func() bool { return ask(5*time.Second) == 240 })
	testkit.Must(t, c.Shutdown(t.Context()))
	for _, s := range append(cluster.Masters[1:], cluster.Replicas...) {
		text := dump(t, dialRedis(t, s))
		testkit.Want(t, !strings.Contains(text, "juggler.1:"), "Redis has\n%s", text)
	}
}

// Each master is swept; names that are nobody's, whose keys would be in two places, stay.
func TestClusterSweep(t *testing.T) {
	testkit.CheckLeaks(t)
	c := redisd.StartCluster(t, 3, 0)
	strange := []string{"{", "{a", "{}", "{}a}", "{}}", "}{"}
	push := func(key string) {
		conn, err := c.Dial()
		testkit.Must(t, err)
		defer conn.Close()
		command := "LPUSH"
		if strings.HasSuffix(key, "text}") {
			command = "SET"
		}
		if _, err := conn.Do(command, key, `{"conn_uuid":"c","msg_uuid":"}m{","uri":"u"}`); err != nil {
			t.Fatal(err)
		}
	}
	for _, kind := range []string{"juggler:calls:", "juggler:results:"} {
		for _, name := range strange {
			push(kind + name)
		}
		for _, name := range append(loadURIs(), "text", "more text", "a{b", "a}b", "{") {
			push(kind + "{" + name + "}")
		}
	}
	b := openBroker(t, nil, redis.Options{Address: c.URL(), Sweep: 20 * time.Millisecond})
	left := func() (n int) {
		for _, s := range c.Masters {
			n += strings.Count(dump(t, dialRedis(t, s)), ": list,")
		}
		return n
	}
	testkit.Eventually(t, harness.Patience, "the sweep", func() bool { return left() == 2*len(strange) })
	swept := make(chan error, 1)
	b.Publish(broker.Event{Channel: "c"}, func(err error) { swept <- err })
	testkit.Must(t, <-swept)
}
