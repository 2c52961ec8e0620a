package relay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/internal/web"
)

// callRequest is a request that a door makes a call of.
const callRequest = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"

// withCalls has each request over HTTP/1 make a call, and answered by its status.
func withCalls(t testing.TB) func(*Options) {
	t.Helper()
	serve := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var c LocalCall
		err := web.Conn(r).(*Guest).Local().Open(&c, LocalRequest{Head: headOf(request(hello)...), End: true, Door: "web"})
		web.Begun(r.Context())
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		defer c.Close()
		defer context.AfterFunc(r.Context(), c.Cancel)()
		_, _ = c.Header() // the status says it, too
		code, text := c.Status()
		w.WriteHeader(http.StatusOK)
		fmt.Fprint(w, code, text)
	})
	server := web.NewHTTP1(web.Limits{Head: handshake, HeadBytes: 16 << 10}, nil, func(*http.Request) http.Handler { return serve }, slog.New(slog.DiscardHandler))
	t.Cleanup(server.Close)
	return func(o *Options) { o.HTTP1 = func(g *Guest) { server.ServeConn(g) } }
}

// ends has a worker answer a call by a status alone.
func ends(worker *testkit.Peer, stream uint32) {
	worker.WriteHeaders(stream, end, ":status", "200", "content-type", "application/grpc", "grpc-status", "0")
}

// calls has a caller over HTTP/1 make one, which reaches the worker.
func (c *http1Caller) calls(worker *testkit.Peer, stream uint32) {
	c.t.Helper()
	go func() { c.send(callRequest) }() // ends when it is read
	worker.WantHeaders(stream, end)
}

// answered takes the answer of a call that has ended well.
func (c *http1Caller) answered() *http.Response {
	c.t.Helper()
	answer, body := c.want(http.StatusOK)
	if body != "OK" {
		c.t.Errorf("answered %q", body)
	}
	return answer
}

// R15: after its call a connection may be evicted again, as if it had just come; one with a
// call stays.
func TestGuestsRestBehindTheirCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit, guests = 16, 16 / guestShare
		g := newPipeRig(t, withCalls(t), func(o *Options) { o.Limits.Connections = limit })
		_, worker := g.pipeWorker("w1", 2*guests)
		all, stream := []*http1Caller{}, uint32(1)
		for range guests { // all wait for their answers
			c := g.pipeHTTP1("192.0.2.1")
			c.calls(worker, stream)
			all, stream = append(all, c), stream+2
		}
		synctest.Wait()
		g.pipeHTTP1("192.0.2.2").refused(t)
		for _, n := range []int{2, 0, 3} { // the order in which they rest
			pass(time.Second)
			ends(worker, uint32(2*n+1))
			all[n].answered()
		}
		synctest.Wait() // net/http tells that it rests behind the answer
		for _, n := range []int{2, 0, 3} {
			c := g.pipeHTTP1("192.0.2.2")
			c.calls(worker, stream)
			all[n].wantEnd()
			ends(worker, stream)
			stream += 2
			c.answered()
			c.calls(worker, stream) // it stays
			stream += 2
		}
		if n := g.disconnectedFor("make_room"); n != 3 {
			t.Errorf("%d made room, want 3", n)
		}
		ends(worker, 3)
		all[1].answered()
		for n := 9; n < int(stream); n += 4 {
			ends(worker, uint32(n+2))
		}
		synctest.Wait()
		if s := g.Stats(); s.Doors["web"]["OK"] != 10 || s.Doors[socketDoor]["OK"] != 0 {
			t.Errorf("counted: %v", s.Doors)
		}
	})
}

// refused takes the end of a connection for which there is no place.
func (c *http1Caller) refused(t *testing.T) {
	t.Helper()
	go func() { _, _ = c.Write([]byte(callRequest)) }() // ends when it is closed
	c.wantEnd()
}

// R17: a drain ends a connection that rests, has the request that is on its way answered
// within its second, waits for calls, and tells callers that their connection ends.
func TestDrainOfGuestsWithCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t, withCalls(t))
		_, worker := g.pipeWorker("w1", 10)
		rests, late, busy := g.pipeHTTP1(""), g.pipeHTTP1(""), g.pipeHTTP1("")
		for n, c := range []*http1Caller{rests, late} {
			c.calls(worker, uint32(2*n+1))
			ends(worker, uint32(2*n+1))
			c.answered()
		}
		busy.calls(worker, 5)
		synctest.Wait()
		wait := g.drain(30*time.Second, nil)
		began := time.Now()
		pass(finalGoAway / 2)
		late.calls(worker, 7)
		rests.wantEnd()
		wantTook(t, began, finalGoAway)
		pass(5 * time.Second)
		ends(worker, 7)
		if answer := late.answered(); !answer.Close {
			t.Error("a caller is not told that its connection ends")
		}
		late.wantEnd()
		ends(worker, 5)
		busy.answered()
		busy.wantEnd()
		wait()
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("the drain took %v", took)
		}
	})
}

// A caller over HTTP/1 that leaves has its call cancelled, and makes no more.
func TestGuestsThatLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var guest *Guest
		g := newPipeRig(t, withCalls(t), func(o *Options) {
			serve := o.HTTP1
			o.HTTP1 = func(g *Guest) {
				guest = g
				serve(g)
			}
		})
		_, worker := g.pipeWorker("w1", 1)
		c := g.pipeHTTP1("192.0.2.1")
		c.calls(worker, 1)
		calls := guest.Local()
		c.Close()
		worker.WantRST(1, http2.ErrCodeCancel)
		synctest.Wait()
		for _, l := range []*Local{calls, guest.Local()} {
			if err := l.Open(new(LocalCall), LocalRequest{Head: headOf(request(hello)...), End: true}); !errors.Is(err, ErrClosed) {
				t.Errorf("a call behind the end: %v", err)
			}
		}
		if s := g.Stats(); s.Doors["web"]["CANCELLED"] != 1 {
			t.Errorf("counted: %v", s.Doors)
		}
	})
}

// Who calls by a door of a connection is told to workers as by the connection itself, and
// counts as its caller.
func TestCallsOfGuestsAreTheirs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t, withCalls(t), func(o *Options) { o.Keys.Rate, o.Keys.Burst = 0.001, 2 })
		_, worker := g.pipeWorker("w1", 10)
		c := g.pipeHTTP1("192.0.2.1")
		go func() { c.send(callRequest) }() // ends when it is read
		worker.WantFields(1, end, passedOn(append(request(hello), "x-forwarded-for", "192.0.2.1"))...)
		ends(worker, 1)
		c.answered()
		good, _ := g.pipeFrom("192.0.2.1")
		good.WriteHeaders(1, end, request(hello)...)
		worker.WantHeaders(3, end)
		ends(worker, 3)
		good.WantHeaders(1, end)
		go func() { c.send(callRequest) }() // as above
		if _, body := c.want(http.StatusOK); !strings.Contains(body, "rate limit") {
			t.Errorf("the third call of the address: %q", body)
		}
	})
}
