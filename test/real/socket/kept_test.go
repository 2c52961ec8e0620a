//go:build real || soak

package socket_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cabrank/cabrank/callee"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/internal/testkit/redisd"
	"github.com/cabrank/cabrank/test/real/harness"
)

// startKeeper starts a callee of one function that is to run at least once.
func startKeeper(t *testing.T, server *redisd.Server, options callee.Options, f callee.Handler) *callee.Callee {
	t.Helper()
	return startCallee(t, server, options, func(c *callee.Callee) { c.HandleCalls("kept", f, callee.AtLeastOnce()) })
}

// A call that is kept is in Redis until it is answered, with its time, and then nothing is.
func TestKept(t *testing.T) {
	testkit.CheckLeaks(t)
	server := redisd.Start(t)
	release := make(chan struct{})
	c := startKeeper(t, server, callee.Options{}, func(context.Context, *callee.Call) (any, error) {
		<-release
		return "done", nil
	})
	for range 20 {
		push(t, server, "kept", "1", 5*time.Second)
	}
	push(t, server, "kept", "1", 50*time.Millisecond)
	testkit.Eventually(t, harness.Patience, "the calls to be taken", func() bool { return c.Stats().Running == 21 })
	text := dump(t, dialRedis(t, server))
	if strings.Count(text, "calls:timeout:{kept}") < 20 || strings.Count(text, "msg_uuid") != 21 || strings.Contains(text, "calls:{kept}: list") {
		t.Errorf("while it runs Redis has\n%s", text)
	}
	testkit.Eventually(t, harness.Patience, "the last one to expire", func() bool {
		return strings.Count(dump(t, dialRedis(t, server)), "calls:timeout:{kept}") == 20
	})
	close(release)
	testkit.Eventually(t, harness.Patience, "the calls to end", func() bool { return c.Stats().Running == 0 })
	text = dump(t, dialRedis(t, server))
	if s := c.Stats(); s.Answered != 20 || s.Expired != 1 || strings.Contains(text, "calls:timeout") || strings.Contains(text, "taken") {
		t.Errorf("%+v; Redis has\n%s", s, text)
	}
	testkit.Must(t, c.Shutdown(t.Context()))
	if text := dump(t, dialRedis(t, server)); strings.Contains(text, "juggler.1:") {
		t.Errorf("after it Redis has\n%s", text)
	}
}

// What a callee has that is killed another one answers, and all of its lists go.
func TestKeptIsGivenBack(t *testing.T) {
	server := redisd.Start(t)
	p := startCalleeProcess(t, server, "--at-least-once")
	id := push(t, server, "test.delay", `"1"`, 30*time.Second)
	await(t, server, `"args":1}`)
	for range 3 {
		push(t, server, "test.delay", `"20000"`, 30*time.Second)
	}
	testkit.Eventually(t, harness.Patience, "the calls to be taken", func() bool {
		return strings.Count(dump(t, dialRedis(t, server)), `"20000"`) == 3 && strings.Contains(dump(t, dialRedis(t, server)), "taken")
	})
	var ran atomic.Int32
	c := runCallee(t, callee.Options{Redis: "unix://" + server.Socket, DeadAfter: time.Second}, func(c *callee.Callee) {
		c.HandleCalls("test.delay", func(context.Context, *callee.Call) (any, error) {
			ran.Add(1)
			return "instead", nil
		}, callee.AtLeastOnce())
	})
	p.Kill()
	testkit.Eventually(t, harness.Patience, "the calls to be answered", func() bool {
		return strings.Count(dump(t, dialRedis(t, server)), `"args":"instead"`) == 3
	})
	testkit.Eventually(t, harness.Patience, "the dead to be forgotten", func() bool {
		n, err := dialRedis(t, server).Do("SCARD", "juggler.1:callees:{test.delay}")
		return err == nil && n == int64(1)
	})
	testkit.Must(t, c.Shutdown(t.Context()))
	text := dump(t, dialRedis(t, server))
	if ran.Load() != 3 || c.Stats().GivenBack != 3 || strings.Contains(text, "taken") || strings.Contains(text, "{test.delay}") || !strings.Contains(text, string(id)) {
		t.Errorf("%d ran, %+v; Redis has\n%s", ran.Load(), c.Stats(), text)
	}
}

// A call that kills its callees is given back three times, then its caller is told; one whose
// time is over, or that is none, is nobody's.
func TestKeptIsGivenUp(t *testing.T) {
	testkit.CheckLeaks(t)
	server := redisd.Start(t)
	conn := dialRedis(t, server)
	var ran atomic.Int32
	c := startKeeper(t, server, callee.Options{DeadAfter: time.Millisecond}, func(context.Context, *callee.Call) (any, error) {
		ran.Add(1)
		return "ok", nil
	})
	die := func(tries, id string, alive bool) {
		payload, _ := json.Marshal(map[string]string{"conn_uuid": caller, "msg_uuid": id, "uri": "kept"})
		if alive {
			conn.Do("SET", "juggler:calls:timeout:{kept}:"+id, 60000, "PX", 60000)
		}
		if tries != "" {
			conn.Do("SET", "juggler.1:tries:{kept}:"+id, tries)
		}
		conn.Do("LPUSH", "juggler.1:taken:{kept}:dead", payload)
	}
	die("2", "third", true)
	die("3", "fourth", true)
	die("", "expired", false)
	conn.Do("LPUSH", "juggler.1:taken:{kept}:dead", "nonsense")
	conn.Do("SADD", "juggler.1:callees:{kept}", "dead")
	await(t, server, `"msg_uuid":"third","uri":"kept","args":"ok"`, `"msg_uuid":"fourth","uri":"kept","args":{"error":{"message":"every callee that had the call has died"}}`)
	testkit.Eventually(t, harness.Patience, "the calls to end", func() bool { return c.Stats().Running == 0 })
	text := dump(t, conn)
	if ran.Load() != 1 || strings.Contains(text, "dead:") || strings.Contains(text, "tries") || strings.Contains(text, "nonsense") {
		t.Errorf("%d ran; Redis has\n%s", ran.Load(), text)
	}
}

// A callee that stops and has to cut calls gives them back at once.
func TestKeptIsCut(t *testing.T) {
	testkit.CheckLeaks(t)
	server := redisd.Start(t)
	begun, begins := make(chan struct{}, 10), atomic.Int32{}
	first := startKeeper(t, server, callee.Options{}, func(ctx context.Context, _ *callee.Call) (any, error) {
		begun <- struct{}{}
		<-ctx.Done()
		return nil, []error{ctx.Err(), callee.ErrLater}[begins.Add(1)%2]
	})
	for range 2 {
		push(t, server, "kept", "1", 30*time.Second)
		<-begun
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	testkit.Want(t, first.Shutdown(ctx) != nil, "nothing was cut")
	startKeeper(t, server, callee.Options{}, func(context.Context, *callee.Call) (any, error) { return "second", nil })
	testkit.Eventually(t, harness.Patience, "both calls to be answered", func() bool {
		return strings.Count(dump(t, dialRedis(t, server)), `"args":"second"`) == 2
	})
}

// Calls that are kept survive the loss of connections, and run again only if they have to.
func TestKeptOutlivesConnections(t *testing.T) {
	testkit.CheckLeaks(t)
	server := redisd.Start(t)
	c := startKeeper(t, server, callee.Options{}, func(context.Context, *callee.Call) (any, error) { return "x", nil })
	conn := dialRedis(t, server)
	const calls = 300
	for i := range calls {
		push(t, server, "kept", "1", 20*time.Second)
		if i%25 == 0 {
			_, err := conn.Do("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
			testkit.Must(t, err)
		}
	}
	testkit.Eventually(t, harness.Patience, "all to be answered", func() bool {
		text := dump(t, conn)
		return strings.Count(text, `"args":"x"`) >= calls && !strings.Contains(text, "calls:timeout") && !strings.Contains(text, "taken")
	})
	t.Logf("%+v", c.Stats())
}
