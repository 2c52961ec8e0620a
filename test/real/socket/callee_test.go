//go:build real || soak

package socket_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	redigo "github.com/gomodule/redigo/redis"

	"github.com/cabrank/cabrank/callee"
	"github.com/cabrank/cabrank/internal/broker"
	"github.com/cabrank/cabrank/internal/broker/brokertest"
	"github.com/cabrank/cabrank/internal/broker/redis"
	"github.com/cabrank/cabrank/internal/socket"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/internal/testkit/redisd"
	"github.com/cabrank/cabrank/test/oldjuggler"
	"github.com/cabrank/cabrank/test/real/harness"
)

// runCallee starts a callee of ours with the functions of add, which stops with the test.
func runCallee(t testing.TB, options callee.Options, add func(*callee.Callee)) *callee.Callee {
	t.Helper()
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	c := callee.New(options)
	add(c)
	testkit.Must(t, c.Start())
	t.Cleanup(func() { _ = shutdown(c) }) // some tests have broken Redis
	return c
}

func shutdown(c *callee.Callee) error {
	ctx, cancel := context.WithTimeout(context.Background(), harness.Patience)
	defer cancel()
	return c.Shutdown(ctx)
}

func withTestFunctions(c *callee.Callee) {
	for uri, f := range broker.TestFunctions() {
		c.HandleCalls(uri, func(ctx context.Context, call *callee.Call) (any, error) { return f(ctx, call.Args) })
	}
}

// startCallee starts one with the test functions and those of add, and holds it to a good
// end.
func startCallee(t *testing.T, server *redisd.Server, options callee.Options, add func(*callee.Callee)) *callee.Callee {
	t.Helper()
	options.Redis = "unix://" + server.Socket
	c := runCallee(t, options, func(c *callee.Callee) {
		withTestFunctions(c)
		if add != nil {
			add(c)
		}
	})
	t.Cleanup(func() {
		err := shutdown(c)
		testkit.Want(t, err == nil, "%v", err)
	})
	return c
}

// push puts a call into Redis as a server does, and returns its id.
func push(t *testing.T, server *redisd.Server, uri, args string, timeout time.Duration) (id oldjuggler.UUID) {
	t.Helper()
	conn := dialRedis(t, server)
	defer conn.Close()
	id = oldjuggler.NewUUID()
	payload, err := json.Marshal(map[string]any{"conn_uuid": caller, "msg_uuid": id, "uri": uri, "args": json.RawMessage(args)})
	testkit.Must(t, err)
	for _, command := range [][]any{
		{"SET", "juggler:calls:timeout:{" + uri + "}:" + string(id), timeout.Milliseconds(), "PX", timeout.Milliseconds()},
		{"LPUSH", "juggler:calls:{" + uri + "}", payload},
	} {
		_, err = conn.Do(command[0].(string), command[1:]...)
		testkit.Must(t, err)
	}
	return id
}

// caller is who has pushed.
const caller = "00000000-0000-4000-8000-00000000000c"

// await waits until Redis has what is wanted, and returns all that it has.
func await(t *testing.T, server *redisd.Server, what ...string) (text string) {
	t.Helper()
	conn := dialRedis(t, server)
	defer conn.Close()
	testkit.Eventually(t, harness.Patience, strings.Join(what, ", "), func() bool {
		text = dump(t, conn)
		return !slices.ContainsFunc(what, func(w string) bool { return !strings.Contains(text, w) })
	})
	return text
}

// The broker keeps to its suite with callees of ours, with several results, too.
func TestCalleeSuite(t *testing.T) {
	brokertest.Run(t, func(t *testing.T) brokertest.House {
		t.Helper()
		server := redisd.Start(t)
		serve := func(uri string, atOnce int, f callee.Handler) func() {
			c := callee.New(callee.Options{Redis: "unix://" + server.Socket, Workers: atOnce, Log: slog.New(slog.DiscardHandler)})
			c.HandleCalls(uri, f)
			testkit.Must(t, c.Start())
			return func() {
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				defer cancel()
				_ = c.Shutdown(ctx) // some tests have broken Redis
			}
		}
		return brokertest.House{
			Broker: openBroker(t, server, redis.Options{CallCap: brokertest.CallCap}),
			Serve: func(uri string, atOnce int, f broker.Function) func() {
				return serve(uri, atOnce, func(ctx context.Context, call *callee.Call) (any, error) { return f(ctx, call.Args) })
			},
			ServeStream: func(uri string, atOnce int, f broker.StreamFunction) func() {
				return serve(uri, atOnce, func(ctx context.Context, call *callee.Call) (any, error) {
					return f(ctx, call.Args, func(result json.RawMessage) error { return call.Send(ctx, result) })
				})
			},
			Close: server.Kill, Unordered: true, Unannounced: true,
		}
	})
}

// A call alone is 6 round trips: pushed, popped, its time read, its result pushed and
// popped, and the rest deleted.
func TestCalleeRoundTrips(t *testing.T) {
	testkit.CheckLeaks(t)
	server := redisd.Start(t)
	startCallee(t, server, callee.Options{}, nil)
	url, _ := startNew(t, server, socket.Options{}, redis.Options{})
	client := dialOld(t, url)
	conn := dialRedis(t, server)
	before, connections := commandCounts(t, conn), connectionsOf(t, conn)
	const calls = 20
	for range calls {
		_, err := client.Call("test.echo", "x", 10*time.Second)
		testkit.Must(t, err)
		client.next(oldjuggler.Res)
	}
	after := commandCounts(t, conn)
	for name, each := range map[string]int{"set": 2, "lpush": 2, "blmpop": 2, "pttl": 1, "del": 2, "ping": 0, "eval": 0} {
		got := after[name] - before[name]
		testkit.Want(t, got >= each*calls-2 && got <= each*calls+2, "%d times %s in %d calls, want %d", got, name, calls, each*calls)
	}
	testkit.Equal(t, connectionsOf(t, conn), connections, "connections until now")
}

// connectionsOf returns how many were ever opened to a Redis.
func connectionsOf(t *testing.T, conn redigo.Conn) string {
	t.Helper()
	text, err := redigo.String(conn.Do("INFO", "stats"))
	testkit.Must(t, err)
	_, after, _ := strings.Cut(text, "total_connections_received:")
	n, _, _ := strings.Cut(after, "\r")
	return n
}

// Nobody takes more than it can run: with one worker each, four callees run four calls.
func TestCalleeNeverHoards(t *testing.T) {
	testkit.CheckLeaks(t)
	server := redisd.Start(t)
	running, release := make(chan struct{}, 8), make(chan struct{})
	for range 4 {
		startCallee(t, server, callee.Options{Workers: 1}, func(c *callee.Callee) {
			c.HandleCalls("wait", func(context.Context, *callee.Call) (any, error) {
				running <- struct{}{}
				<-release
				return nil, nil
			})
		})
	}
	defer close(release)
	for range 6 {
		push(t, server, "wait", "1", 10*time.Second)
	}
	testkit.Eventually(t, harness.Patience, "four calls to run", func() bool { return len(running) == 4 })
	n, err := dialRedis(t, server).Do("LLEN", "juggler:calls:{wait}")
	testkit.Want(t, err == nil && n == int64(2), "%v calls wait, want 2 (%v)", n, err)
}

// No URI waits behind another one that has many calls.
func TestCalleeRotates(t *testing.T) {
	testkit.CheckLeaks(t)
	server := redisd.Start(t)
	for range 50 {
		push(t, server, "a", "1", 10*time.Second)
	}
	push(t, server, "z", "1", 10*time.Second)
	var mu sync.Mutex
	var order []string
	startCallee(t, server, callee.Options{Workers: 1}, func(c *callee.Callee) {
		for _, uri := range []string{"a", "z"} {
			c.HandleCalls(uri, func(context.Context, *callee.Call) (any, error) {
				mu.Lock()
				defer mu.Unlock()
				order = append(order, uri)
				return nil, nil
			})
		}
	})
	testkit.Eventually(t, harness.Patience, "all calls", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(order) == 51
	})
	at := slices.Index(order, "z")
	testkit.Want(t, at <= 2, "%d calls of a before the one of z", at)
}

// The time of a call is what it had left when it was taken, and over means over.
func TestCalleeDeadline(t *testing.T) {
	testkit.CheckLeaks(t)
	server := redisd.Start(t)
	push(t, server, "time", `"late"`, 20*time.Millisecond)
	testkit.Eventually(t, harness.Patience, "its time to be over", func() bool {
		n, _ := dialRedis(t, server).Do("EXISTS", "juggler:calls:timeout:{time}:"+"x")
		return n == int64(0) && !strings.Contains(dump(t, dialRedis(t, server)), "timeout")
	})
	push(t, server, "time", `"soon"`, 2*time.Second)
	var ran atomic.Int32
	left := make(chan time.Duration, 1)
	c := startCallee(t, server, callee.Options{}, func(c *callee.Callee) {
		callee.Handle(c, "time", func(ctx context.Context, _ string) (int, error) {
			ran.Add(1)
			deadline, _ := ctx.Deadline()
			left <- time.Until(deadline)
			<-ctx.Done()
			return 0, ctx.Err()
		})
	})
	d := <-left
	testkit.Want(t, d <= 2*time.Second, "%v left of 2 s", d)
	testkit.Eventually(t, harness.Patience, "both to expire", func() bool { return c.Stats().Expired == 2 && c.Stats().Running == 0 })
	testkit.Want(t, ran.Load() == 1, "%d calls ran", ran.Load())
	testkit.Equal(t, dump(t, dialRedis(t, server)), "", "left in Redis")
}

// own is an error with a form of its own.
type own struct{ Code int }

func (e own) Error() string { return "own" }

// MarshalJSON is what the caller gets.
func (e own) MarshalJSON() ([]byte, error) { return fmt.Appendf(nil, `{"code":%d}`, e.Code), nil }

// What becomes of a call, whatever its function does.
func TestCalleeAnswers(t *testing.T) {
	testkit.CheckLeaks(t)
	server := redisd.Start(t)
	var log testkit.Buffer
	var seen atomic.Int32
	around := func(next callee.Handler) callee.Handler {
		return func(ctx context.Context, call *callee.Call) (any, error) {
			seen.Add(1)
			if call.URI == "forbidden" {
				return nil, errors.New("no")
			}
			return next(ctx, call)
		}
	}
	never := func(context.Context, *callee.Call) (any, error) { return "never", nil }
	c := startCallee(t, server, callee.Options{Log: slog.New(slog.NewTextHandler(&log, nil)), Middleware: []callee.Middleware{around}}, func(c *callee.Callee) {
		callee.Handle(c, "add", func(_ context.Context, n [2]int) (map[string]int, error) {
			return map[string]int{"sum": n[0] + n[1]}, nil
		})
		callee.Handle(c, "own", func(context.Context, int) (int, error) { return 0, fmt.Errorf("wrapped: %w", own{7}) })
		callee.Handle(c, "panic", func(context.Context, int) (int, error) { panic("at the disco") })
		c.HandleCalls("no form", func(context.Context, *callee.Call) (any, error) { return make(chan int), nil })
		c.HandleCalls("forbidden", never)
		c.HandleCalls("later", func(ctx context.Context, call *callee.Call) (any, error) {
			go func() {
				err := call.Answer(json.RawMessage(`"then"`), nil)
				testkit.Want(t, err == nil, "%v", err)
				err = call.Answer(1, nil)
				testkit.Want(t, errors.Is(err, callee.ErrAnswered) && ctx.Err() != nil, "%v %v", err, ctx.Err())
			}()
			return nil, callee.ErrLater
		})
	})
	for _, tc := range []struct{ uri, args, want string }{
		{"add", "[1,2]", `"args":{"sum":3}}`},
		{"add", `"x"`, `"args":{"error":{"message":"json: cannot unmarshal string into Go value of type [2]int"}}}`},
		{"own", "1", `"args":{"code":7}}`},
		{"panic", "1", `"args":{"error":{"message":"the function has panicked"}}}`},
		{"no form", "1", `"args":{"error":{"message":"json: unsupported type: chan int"}}}`},
		{"forbidden", "1", `"args":{"error":{"message":"no"}}}`},
		{"later", "1", `"args":"then"}`},
		{"test.nothing", "1", `"uri":"test.nothing"}`},
	} {
		id := push(t, server, tc.uri, tc.args, 10*time.Second)
		await(t, server, string(id)+`","uri":"`+tc.uri+`"`, tc.want)
	}
	s := c.Stats()
	testkit.Want(t, s.Answered == 8 && s.Failed == 5 && s.Panicked == 1 && seen.Load() == 8, "%+v, %d seen", s, seen.Load())
	text := log.String()
	testkit.Want(t, strings.Count(text, "\n") == 1 && strings.Contains(text, "at the disco"), "log:\n%s", text)
}

// A stop finishes what was taken, and takes no more; what is not finished in time is cut.
func TestCalleeShutdown(t *testing.T) {
	testkit.CheckLeaks(t)
	server := redisd.Start(t)
	begun := make(chan struct{}, 10)
	c := startCallee(t, server, callee.Options{}, func(c *callee.Callee) {
		callee.Handle(c, "slow", func(ctx context.Context, ms int) (int, error) {
			begun <- struct{}{}
			select {
			case <-time.After(time.Duration(ms) * time.Millisecond):
			case <-ctx.Done():
			}
			return ms, ctx.Err()
		})
	})
	push(t, server, "slow", "200", 10*time.Second)
	<-begun
	testkit.Must(t, c.Shutdown(t.Context()))
	push(t, server, "slow", "1", 10*time.Second)
	await(t, server, `"args":200}`, "juggler:calls:{slow}")
	again := startCallee(t, server, callee.Options{}, func(c *callee.Callee) {
		callee.Handle(c, "slow", func(ctx context.Context, _ int) (int, error) {
			begun <- struct{}{}
			<-ctx.Done()
			return 0, ctx.Err()
		})
	})
	<-begun
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	testkit.Refused(t, again.Shutdown(ctx), "calls that were cut: 1")
}

// A caller that leaves takes its calls back: the function that runs is told, and the call
// that waits is not run.
func TestCalleeIsTold(t *testing.T) {
	testkit.CheckLeaks(t)
	server := redisd.Start(t)
	b := openBroker(t, server, redis.Options{})
	begun, told := make(chan string, 4), make(chan error, 4)
	c := startCallee(t, server, callee.Options{Workers: 1}, func(c *callee.Callee) {
		callee.Handle(c, "wait", func(ctx context.Context, name string) (string, error) {
			begun <- name
			<-ctx.Done()
			told <- ctx.Err()
			return "", ctx.Err()
		})
	})
	testkit.Eventually(t, harness.Patience, "the callee to listen", func() bool {
		n, err := redigo.Int(dialRedis(t, server).Do("PUBLISH", "juggler.1:words:wait", `{}`))
		return err == nil && n == 1
	})
	leave := map[string]context.CancelFunc{}
	for _, name := range []string{"first", "second", "third"} {
		ctx, cancel := context.WithCancel(t.Context())
		t.Cleanup(cancel)
		leave[name] = cancel
		accepted := make(chan error, 1)
		b.Call(ctx, broker.Call{
			URI: "wait", Args: json.RawMessage(`"` + name + `"`), Timeout: 10 * time.Second,
			Accepted: func(err error) { accepted <- err }, Answered: func(json.RawMessage, error) {},
		})
		testkit.Must(t, <-accepted)
	}
	testkit.Equal(t, <-begun, "first", "what has begun")
	leave["second"]()
	testkit.Eventually(t, harness.Patience, "the call to be taken back", func() bool {
		return strings.Count(dump(t, dialRedis(t, server)), "calls:timeout") == 1
	})
	leave["first"]()
	err := <-told
	testkit.Want(t, errors.Is(err, context.Canceled), "%v", err)
	testkit.Equal(t, <-begun, "third", "what has begun")
	leave["third"]()
	testkit.Eventually(t, harness.Patience, "all to end", func() bool { return c.Stats().Running == 0 && c.Stats().Expired == 3 })
	testkit.Equal(t, dump(t, dialRedis(t, server)), "", "what Redis has")
}
