package socket

import (
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"github.com/cabrank/cabrank/internal/broker"
	"github.com/cabrank/cabrank/internal/testkit"
)

// newAccount returns one that has a budget for itself.
func newAccount(total int64) *account {
	a := &account{budget: new(budget)}
	a.budget.total.Store(total)
	return a
}

// stuckOutbox returns one whose connection nobody reads, and what to read it with.
func stuckOutbox(t *testing.T, most int, b *account, dropped *int) (o *outbox, peer net.Conn) {
	t.Helper()
	conn, peer := net.Pipe()
	t.Cleanup(func() {
		conn.Close()
		peer.Close()
	})
	options := Options{QueueBytes: most}.withDefaults()
	return newOutbox(conn, &options, b, &sync.Pool{New: func() any { return new(batch) }}, func(n int) { *dropped += n }, func() {}), peer
}

// Of what is not read in time the oldest events are dropped, and no reply; what is
// left comes in its order.
func TestOldestEventsAreDropped(t *testing.T) {
	testkit.CheckLeaks(t)
	dropped, b := 0, newAccount(1<<20)
	o, peer := stuckOutbox(t, 100, b, &dropped)
	o.reply(newFrame([]byte("first|"), b))
	testkit.Eventually(t, within, "the writer to be stuck", func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		return o.sending > 0
	})
	for i := range 50 {
		e := newFrame(fmt.Appendf(nil, "event%03d|", i), b)
		o.event(e.retain())
		e.drop()
		if i%10 == 9 {
			o.reply(newFrame(fmt.Appendf(nil, "reply%d|", i), b))
		}
	}
	o.end(nil, true)
	var got strings.Builder
	buffer := make([]byte, 1000)
	for {
		n, err := peer.Read(buffer)
		got.Write(buffer[:n])
		if err != nil {
			break
		}
	}
	want := "first|reply9|reply19|reply29|event039|reply39|"
	for i := 40; i < 50; i++ {
		want += fmt.Sprintf("event%03d|", i)
	}
	want += "reply49|"
	testkit.Want(t, got.String() == want && dropped == 39, "dropped %d, got\n%s, want\n%s", dropped, got.String(), want)
	<-o.drained()
	testkit.Equal(t, b.used.Load(), 0, "bytes of the budget are left behind")
}

// Whatever ends an outbox gives all back, also what comes too late.
func TestOutboxGivesBack(t *testing.T) {
	testkit.CheckLeaks(t)
	for name, end := range map[string]func(*outbox){
		"abort": func(o *outbox) { o.abort() },
		"end":   func(o *outbox) { o.end(newFrame([]byte("bye"), o.account), false); o.conn.Close() },
	} {
		dropped, b := 0, newAccount(1<<20)
		o, _ := stuckOutbox(t, 1000, b, &dropped)
		for range 20 {
			o.reply(newFrame(make([]byte, 100), b))
			o.event(newFrame(make([]byte, 100), b))
		}
		end(o)
		o.reply(newFrame(make([]byte, 100), b))
		o.event(newFrame(make([]byte, 100), b))
		<-o.drained()
		testkit.Eventually(t, within, name+" to give all back", func() bool { return b.used.Load() == 0 })
	}
}

// One socket that does not read costs the others nothing: it loses events, they none;
// and it has one goroutine more at most.
func TestOneSlowReader(t *testing.T) {
	url, server, b := start(t, Options{QueueBytes: 64 << 10, BufferTotal: 4 << 20}, noBounds)
	slow, quick := dial(t, url), dial(t, url)
	slow.ws.NetConn().(*net.TCPConn).SetReadBuffer(4 << 10)
	for _, c := range []*client{slow, quick} {
		c.send(subFrame("1", "c")).want("ack 1")
	}
	before := runtime.NumGoroutine()
	const events = 5000
	args := []byte(`"` + strings.Repeat("x", 2000) + `"`)
	for i := range events {
		b.Publish(broker.Event{Channel: "c", ID: idOf(fmt.Sprintf("%x", i+1)), Args: args}, func(error) {})
		got := quick.next()
		want := fmt.Sprintf("%x", i+1)
		testkit.Need(t, got.kind == Evnt && strings.TrimLeft(got.id, "0-") == want, "got %+v, want event %s", got, want)
	}
	stats := server.Stats()
	if stats.Dropped == 0 || stats.BufferedBytes > 4<<20 {
		t.Errorf("%d events dropped, %d bytes wait", stats.Dropped, stats.BufferedBytes)
	}
	more := runtime.NumGoroutine() - before
	testkit.Want(t, more <= 2, "%d goroutines more", more)
}

// Together, those who do not read take no more than the budget; who reads goes on.
func TestManySlowReaders(t *testing.T) {
	const total = 8 << 20
	url, server, b := start(t, Options{QueueBytes: 1 << 20, BufferTotal: total}, noBounds)
	const sockets = 30
	for i := range sockets {
		c := dial(t, url)
		c.ws.NetConn().(*net.TCPConn).SetReadBuffer(4 << 10)
		c.send(subFrame("1", fmt.Sprint("c", i))).want("ack 1")
	}
	quick := dial(t, url)
	quick.send(subFrame("1", "quick")).want("ack 1")
	args := []byte(`"` + strings.Repeat("x", 10_000) + `"`)
	for round := range 1000 {
		for i := range sockets {
			b.Publish(broker.Event{Channel: fmt.Sprint("c", i), ID: idOf("1"), Args: args}, func(error) {})
		}
		b.Publish(broker.Event{Channel: "quick", ID: idOf("2"), Args: args}, func(error) {})
		quick.want("evnt 2")
		used := server.Stats().BufferedBytes
		testkit.Need(t, used <= total+cost(sockets*mostBatchBytes*2), "round %d: %d bytes wait", round, used)
	}
	testkit.Want(t, server.Stats().Dropped != 0, "nothing was dropped: the test shows nothing")
}

// A message that comes while the budget is used up takes it from events.
func TestLongMessageSheds(t *testing.T) {
	url, server, b := start(t, Options{QueueBytes: 1 << 20, BufferTotal: 1 << 20, WriteTimeout: time.Minute}, noBounds)
	slow, c := dial(t, url), dial(t, url)
	slow.ws.NetConn().(*net.TCPConn).SetReadBuffer(4 << 10)
	slow.send(subFrame("1", "c")).want("ack 1")
	args := []byte(`"` + strings.Repeat("x", 10_000) + `"`)
	testkit.Eventually(t, within, "the budget to be used", func() bool {
		for range 50 {
			b.Publish(broker.Event{Channel: "c", ID: idOf("1"), Args: args}, func(error) {})
		}
		return server.Stats().Dropped > 0
	})
	c.send(pubFrame("3", "other", strings.Repeat("y", 20_000))).want("ack 3")
}

// A message that finds no room, and no events to take it from, ends its socket; in
// juggler.1 with a word.
func TestLongMessageWithoutRoom(t *testing.T) {
	url, server, _ := start(t, Options{BufferTotal: 64 << 10}, noBounds)
	long := strings.Repeat("y", 200_000)
	old, c := dial(t, url), join(t, &websocket.Dialer{}, url)
	_ = old.ws.WriteMessage(websocket.TextMessage, []byte(pubFrame("1", "c", long))) // the socket may end meanwhile
	wantEnded(t, server, "memory", 1)
	_ = c.ws.WriteMessage(websocket.TextMessage, []byte(`{"type":"pub","channel":"c","args":"`+long+`"}`))
	c.wantClosed(websocket.CloseTryAgainLater)
	wantEnded(t, server, "memory", 2)
}

// What others hold of the budget does not end who reads; who takes nothing for a while ends.
func TestReaderWithoutRoomLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dropped, a := 0, newAccount(1<<20)
		o, peer := stuckOutbox(t, 1000, a, &dropped)
		other := &account{budget: a.budget}
		other.force(1 << 20)
		defer other.Give(1 << 20)
		const replies = 10
		for range 2 {
			for range replies {
				o.reply(newFrame(make([]byte, scarceBytes), a))
			}
			if _, err := io.ReadFull(peer, make([]byte, replies*scarceBytes)); err != nil {
				t.Fatalf("who reads has ended as %v: %v", o.cause(), err)
			}
			synctest.Wait()
			time.Sleep(2 * slowAfter) //nolint:forbidigo // in a bubble
		}
		for range replies {
			o.reply(newFrame(make([]byte, scarceBytes), a))
		}
		time.Sleep(2 * slowAfter) //nolint:forbidigo // in a bubble
		o.reply(newFrame(make([]byte, scarceBytes), a))
		testkit.Want(t, o.cause() == endSlow, "who does not read has ended as %v", o.cause())
		<-o.drained()
	})
}
