//go:build real || soak

package socket_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	redigo "github.com/gomodule/redigo/redis"
	"github.com/gorilla/websocket"

	"github.com/cabrank/cabrank/callee"
	"github.com/cabrank/cabrank/internal/broker"
	"github.com/cabrank/cabrank/internal/broker/redis"
	"github.com/cabrank/cabrank/internal/socket"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/internal/testkit/redisd"
	"github.com/cabrank/cabrank/test/oldjuggler"
	"github.com/cabrank/cabrank/test/real/harness"
)

// A Redis that is killed and started again, empty.
func TestRestartUnderLoad(t *testing.T) {
	testkit.CheckLeaks(t)
	server := redisd.Start(t)
	l := startLoad(t, server, "unix://"+server.Socket)
	l.refused(t, 5, server.Kill)
	testkit.Must(t, server.Restart())
	l.recovers(t)
	l.ends(t, server)
}

// A master of a Cluster is killed: a replica takes its place.
func TestClusterFailoverUnderLoad(t *testing.T) {
	testkit.CheckLeaks(t)
	c := redisd.StartCluster(t, 3, 1)
	l := startLoad(t, c, c.URL())
	l.refused(t, 5, c.Masters[0].Kill)
	l.recovers(t)
	l.ends(t, append(c.Masters[1:], c.Replicas...)...)
}

// Slots of a master move to another one: calls, results and events go with them.
func TestMoveUnderLoad(t *testing.T) {
	testkit.CheckLeaks(t)
	c := redisd.StartCluster(t, 3, 0)
	l := startLoad(t, c, c.URL())
	c.Move(t, c.Masters[2], c.Masters[1])
	l.recovers(t)
	l.ends(t, c.Masters...)
}

// The primary of a set is killed: Sentinels make the replica the primary.
func TestSentinelFailoverUnderLoad(t *testing.T) {
	testkit.CheckLeaks(t)
	s := redisd.StartSet(t, 1)
	l := startLoad(t, s, s.URL())
	l.refused(t, 5, s.Primary.Kill)
	l.recovers(t)
	l.ends(t, s.Replica)
}

// A master that is silent holds up its own calls and no others: they need one master each.
func TestSilentMaster(t *testing.T) {
	testkit.CheckLeaks(t)
	c := redisd.StartCluster(t, 3, 0)
	l := startLoad(t, c, c.URL())
	began := time.Now()
	for _, signal := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGCONT} {
		testkit.Must(t, syscall.Kill(c.Masters[2].PID(), signal))
		if signal == syscall.SIGSTOP {
			l.answersSome(t, 100)
		}
	}
	took := time.Since(began)
	testkit.Want(t, took <= 5*time.Second, "the others had to wait %v", took)
	l.recovers(t)
	l.ends(t, c.Masters...)
}

// Subscriptions by the thousand are made again, all of them.
func TestManySubscriptionsComeAgain(t *testing.T) {
	testkit.CheckLeaks(t)
	server := redisd.Start(t)
	b := openBroker(t, server, redis.Options{})
	const topics = 1200
	done := make(chan error, 2*topics)
	for i := range topics {
		b.Subscribe(broker.Topic{Name: fmt.Sprint(i)}, func(err error) { done <- err })
		b.Subscribe(broker.Topic{Name: fmt.Sprint(i), Pattern: true}, func(err error) { done <- err })
	}
	for range 2 * topics {
		testkit.Must(t, <-done)
	}
	server.Kill()
	testkit.Must(t, server.Restart())
	conn := dialRedis(t, server)
	testkit.Eventually(t, harness.Patience, "all subscriptions", func() bool {
		channels, _ := redigo.Strings(conn.Do("PUBSUB", "CHANNELS"))
		patterns, _ := redigo.Int(conn.Do("PUBSUB", "NUMPAT"))
		return len(channels) == topics && patterns == topics
	})
}

// loadURIs are enough to be on all masters of a Cluster.
func loadURIs() (uris []string) {
	for i := range 8 {
		uris = append(uris, fmt.Sprintf("load.%d", i))
	}
	return uris
}

// load is callers and a publisher on a server of ours.
type load struct {
	ours  *socket.Server
	url   string
	quiet chan struct{} // closed: they ask no more
	leave chan struct{} // closed: they end
	ended func()        // returns when they have

	asked, refusals, late, published, seen atomic.Int64
	answered                               map[string]*atomic.Int64 // by URI
}

// loadCallers call each URI.
const loadCallers = 2

// startLoad starts it, with a callee for each URI, old ones and ours in turn, and waits until
// all are answered.
func startLoad(t *testing.T, dial dialer, address string) *load {
	t.Helper()
	for i, uri := range loadURIs() {
		if i%2 == 0 {
			keepOldCallee(t, dial, uri)
			continue
		}
		runCallee(t, callee.Options{Redis: address, Workers: 4}, func(c *callee.Callee) {
			callee.Handle(c, uri, func(_ context.Context, text string) (string, error) { return text, nil })
		})
	}
	l := &load{answered: map[string]*atomic.Int64{}, quiet: make(chan struct{}), leave: make(chan struct{})}
	l.url, l.ours = startNew(t, nil, socket.Options{}, redis.Options{Address: address, Sweep: 100 * time.Millisecond})
	var running sync.WaitGroup
	l.ended = sync.OnceFunc(func() {
		close(l.leave)
		running.Wait()
	})
	t.Cleanup(l.ended)
	for _, uri := range loadURIs() {
		l.answered[uri] = &atomic.Int64{}
		for range loadCallers {
			client := dialOld(t, l.url)
			running.Go(func() { l.call(t, client, uri) })
		}
	}
	subscriber := joinChannel(t, l.url, socket.Protocol1, "c0")
	publisher := dialOld(t, l.url)
	running.Go(func() { l.publish(t, publisher) })
	running.Go(func() { l.watch(t, subscriber) })
	l.recovers(t)
	return l
}

// keepOldCallee runs an old callee, and another one when it ends, as it does when its
// Redis breaks.
func keepOldCallee(t *testing.T, dial dialer, uri string) {
	t.Helper()
	echo := map[string]oldjuggler.Function{uri: oldjuggler.TestFunctions()["test.echo"]}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		for ctx.Err() == nil {
			if callee, err := oldjuggler.NewCallee(dial.Dial, 4, echo); err == nil {
				ended := context.AfterFunc(ctx, callee.Close)
				_ = callee.Run() // whatever ends it, another one comes
				ended()
			}
			<-time.After(20 * time.Millisecond)
		}
	})
	t.Cleanup(func() {
		stop()
		running.Wait()
	})
}

// call asks again and again; each call ends in one way.
func (l *load) call(t *testing.T, client *oldPeer, uri string) {
	t.Helper()
	for l.goesOn(5 * time.Millisecond) {
		l.asked.Add(1)
		if _, err := client.Call(uri, "x", 1200*time.Millisecond); err != nil {
			t.Error(err)
			return
		}
		switch client.ended().Type {
		case oldjuggler.Res:
			l.answered[uri].Add(1)
		case oldjuggler.Nack:
			l.refusals.Add(1)
		case oldjuggler.Expired:
			l.late.Add(1)
		}
	}
}

// goesOn waits a while, and reports whether more is to be asked.
func (l *load) goesOn(pause time.Duration) bool {
	select {
	case <-l.quiet:
	case <-l.leave:
	case <-time.After(pause):
		return true
	}
	return false
}

// publish sends numbers.
func (l *load) publish(t *testing.T, client *oldPeer) {
	t.Helper()
	for l.goesOn(2 * time.Millisecond) {
		if _, err := client.Pub("c0", l.published.Add(1)); err != nil {
			t.Error(err)
			return
		}
	}
}

// watch sees that the numbers only grow.
func (l *load) watch(t *testing.T, subscriber *websocket.Conn) {
	t.Helper()
	go func() { // ends with the load
		<-l.leave
		subscriber.Close()
	}()
	for {
		var event struct {
			Type string `json:"type"`
			Args int64  `json:"args"`
		}
		if err := subscriber.ReadJSON(&event); err != nil {
			return
		}
		if event.Type == "gap" {
			continue
		}
		before := l.seen.Swap(event.Args)
		testkit.Want(t, before < event.Args, "event %d came after %d", event.Args, before)
	}
}

// refused does what makes calls be refused, and waits until so many more were.
func (l *load) refused(t *testing.T, n int64, why func()) {
	t.Helper()
	before := l.refusals.Load()
	why()
	testkit.Eventually(t, harness.Patience, "calls to be refused", func() bool { return l.refusals.Load() >= before+n })
}

// answersSome waits until so many more calls were answered, of whatever URI.
func (l *load) answersSome(t *testing.T, n int64) {
	t.Helper()
	sum := func() (sum int64) {
		for _, answered := range l.answered {
			sum += answered.Load()
		}
		return sum
	}
	before := sum()
	testkit.Eventually(t, harness.Patience, "calls to be answered", func() bool { return sum() >= before+n })
}

// recovers waits until calls of every URI are answered, and events come, again.
func (l *load) recovers(t *testing.T) {
	t.Helper()
	began, published := time.Now(), l.published.Load()
	before := map[string]int64{}
	for uri, answered := range l.answered {
		before[uri] = answered.Load()
	}
	for uri, answered := range l.answered {
		testkit.Eventually(t, harness.Patience, "answers of "+uri, func() bool { return answered.Load() >= before[uri]+5 })
	}
	testkit.Eventually(t, harness.Patience, "events", func() bool { return l.seen.Load() > published })
	t.Logf("all go on after %v", time.Since(began).Round(time.Millisecond))
}

// ends holds the end against what was promised: no socket has ended, each call that was
// taken was answered or is counted as expired, and nothing is left in Redis.
func (l *load) ends(t *testing.T, left ...*redisd.Server) {
	t.Helper()
	stats := l.ours.Stats()
	want := loadCallers*len(loadURIs()) + 2
	testkit.Want(t, stats.Sockets == want && stats.Opened == uint64(want), "%d sockets of %d, %v", stats.Sockets, want, stats.Ended)
	close(l.quiet)
	testkit.Eventually(t, harness.Patience, "calls to end", func() bool {
		stats = l.ours.Stats()
		return stats.Calls == 0 && stats.Received["call"] == uint64(l.asked.Load())
	})
	taken := l.asked.Load() - l.refusals.Load()
	if got := stats.Sent["res"] + stats.Expired; got != uint64(taken) {
		t.Errorf("%d were taken, %d answered and %d expired", taken, stats.Sent["res"], stats.Expired)
	}
	t.Logf("%d calls: %d refused, %d expired, %d answered; %d of %d events", l.asked.Load(), l.refusals.Load(), stats.Expired, stats.Sent["res"],
		stats.Sent["evnt"], l.published.Load())
	for _, server := range left {
		conn := dialRedis(t, server)
		testkit.Eventually(t, harness.Patience, "lists to be empty", func() bool { return !strings.Contains(dump(t, conn), ": list,") })
	}
	l.ended()
}
