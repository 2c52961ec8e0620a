package relay

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/testkit"
)

// local makes a caller in this process, which leaves when the test ends.
func (g *rig) local(c Caller) *Local {
	l := g.ServeLocal(c)
	g.t.Cleanup(l.Close)
	return l
}

// headOf makes a header list of names and values.
func headOf(list ...string) (f Fields) {
	for i := 0; i < len(list); i += 2 {
		f = f.Add(list[i], list[i+1])
	}
	return f
}

// listOf is the opposite of headOf.
func listOf(f Fields) (list []string) {
	for name, value := range f.All() {
		list = append(list, name, value)
	}
	return list
}

// open begins a call that must be taken.
func open(t testing.TB, l *Local, c *LocalCall, r LocalRequest) {
	t.Helper()
	if err := l.Open(c, r); err != nil {
		t.Fatalf("open: %v", err)
	}
}

// wantAnswer takes the whole answer that reply writes.
func wantAnswer(t testing.TB, c *LocalCall) {
	t.Helper()
	head, err := c.Header()
	if err != nil || !slices.Equal(listOf(head), responseHead()) {
		t.Fatalf("the head: %q, %v", listOf(head), err)
	}
	body, err := io.ReadAll(c)
	if err != nil || !bytes.Equal(body, hi()) {
		t.Fatalf("the body: %q, %v", body, err)
	}
	if tail := listOf(c.Trailer()); !slices.Equal(tail, []string{"grpc-status", "0"}) {
		t.Fatalf("the trailers: %q", tail)
	}
	wantCode(t, c, grpcwire.OK, "")
}

func wantCode(t testing.TB, c *LocalCall, code grpcwire.Code, message string) {
	t.Helper()
	if got, text := c.Status(); got != code || text != message {
		t.Fatalf("the status: %v %q, want %v %q", got, text, code, message)
	}
}

// A call of this process reaches a worker as any other, with its caller's address;
// what the call took is used again for the next one.
func TestLocalCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t)
		_, worker := g.pipeWorker("w1", 1)
		l := g.local(Caller{Address: "192.0.2.7", Door: "web"})
		var c LocalCall
		for i := range uint32(3) {
			open(t, l, &c, LocalRequest{Head: headOf(request(hello)...), Body: hi(), End: true})
			worker.WantFields(2*i+1, noEnd, passedOn(append(request(hello), "x-forwarded-for", "192.0.2.7"))...)
			worker.WantDataBytes(2*i+1, hi(), end)
			reply(worker, 2*i+1)
			wantAnswer(t, &c)
			c.Close()
		}
		s := g.Stats()
		if s.Doors["web"]["OK"] != 3 || len(s.Doors[socketDoor]) != 0 || s.Connections != 0 || s.of(t, hello).Codes["OK"] != 3 {
			t.Errorf("counted: %v, %d connections, %v", s.Doors, s.Connections, s.of(t, hello).Codes)
		}
	})
}

// The connection ends some seconds after the last call, and the next call makes
// another one; calls that are open keep it.
func TestLocalConnectionIsMadeWhenNeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t)
		_, worker := g.pipeWorker("w1", 2)
		l := g.local(Caller{})
		connections := func() (n int) {
			g.each(func(st *stand) { n = len(st.callers) })
			return n
		}
		if n := connections(); n != 0 {
			t.Errorf("%d connections before the first call", n)
		}
		var stays, c LocalCall
		open(t, l, &stays, LocalRequest{Head: headOf(request(hello)...), End: true})
		worker.WantHeaders(1, end)
		pass(3 * localIdle)
		if n := connections(); n != 1 {
			t.Errorf("%d connections while a call is open", n)
		}
		reply(worker, 1)
		wantAnswer(t, &stays)
		stays.Close()
		pass(3 * localIdle)
		if n := connections(); n != 0 {
			t.Errorf("%d connections without a call", n)
		}
		if n := g.Stats().Partings[string(ofCaller)][partingIdle]; n != 0 {
			t.Errorf("%d callers were sent away", n)
		}
		open(t, l, &c, LocalRequest{Head: headOf(request(hello)...), End: true})
		worker.WantHeaders(3, end)
		reply(worker, 3)
		wantAnswer(t, &c)
		c.Close()
	})
}

// What callers are told in place of an answer.
func TestLocalStatus(t *testing.T) {
	for _, c := range []struct {
		name    string
		head    []string
		answer  func(g *rig, worker *testkit.Peer)
		code    grpcwire.Code
		message string
		err     error // of reading it all
	}{
		{"a status alone", request(hello), func(_ *rig, w *testkit.Peer) {
			w.WantHeaders(1, end)
			w.WriteHeaders(1, end, append(responseHead(), "grpc-status", "5", "grpc-message", "no such%20thing")...)
		}, grpcwire.NotFound, "no such thing", nil},
		{"a reset", request(hello), func(_ *rig, w *testkit.Peer) {
			w.WantHeaders(1, end)
			w.WriteRST(1, http2.ErrCodeEnhanceYourCalm)
		}, grpcwire.ResourceExhausted, "", ErrCallCut},
		{"an answer that is not gRPC", plain("GET", "/page"), func(_ *rig, w *testkit.Peer) {
			w.WantHeaders(1, end)
			w.WriteHeaders(1, end, ":status", "404")
		}, grpcwire.Unimplemented, "", nil},
		{"a worker that dies", request(hello), func(_ *rig, w *testkit.Peer) {
			w.WantHeaders(1, end)
			w.Close()
		}, grpcwire.Unavailable, "cabrank: worker lost", nil},
		{"a bad field", request(hello, "Upper", "case"), func(*rig, *testkit.Peer) {}, grpcwire.Internal, "", ErrCallCut},
		{"a bad value", request(hello, "x", "a\nb"), func(*rig, *testkit.Peer) {}, grpcwire.Internal, "", ErrCallCut},
		{"too large a head", request(hello, "x", strings.Repeat("x", 20<<10)), func(*rig, *testkit.Peer) {},
			grpcwire.ResourceExhausted, "cabrank: headers too large", nil},
		{"too large an answer", request(hello), func(_ *rig, w *testkit.Peer) {
			w.WantHeaders(1, end)
			w.WriteHeaders(1, end, append(responseHead(), "x", strings.Repeat("x", 20<<10))...)
		}, grpcwire.ResourceExhausted, "cabrank: headers too large", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newPipeRig(t)
				_, worker := g.pipeWorker("w1", 1)
				var call LocalCall
				open(t, g.local(Caller{}), &call, LocalRequest{Head: headOf(c.head...), End: true})
				c.answer(g, worker)
				if _, err := io.ReadAll(&call); !errors.Is(err, c.err) {
					t.Errorf("read: %v", err)
				}
				wantCode(t, &call, c.code, c.message)
				call.Close()
			})
		})
	}
}

// Both sides of a stream go on while the other one is open, and a request may be cut
// short by its answer.
func TestLocalStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t)
		_, worker := g.pipeWorker("w1", 1)
		l := g.local(Caller{})
		var c LocalCall
		open(t, l, &c, LocalRequest{Head: headOf(request(hello)...), Body: hi()})
		worker.WantHeaders(1, noEnd)
		worker.WantDataBytes(1, hi(), noEnd)
		worker.WriteHeaders(1, noEnd, responseHead()...)
		got := make([]byte, 100)
		for _, word := range []string{"one", "two", "three"} {
			worker.WriteData(1, noEnd, []byte(word))
			if n, err := c.Read(got); err != nil || string(got[:n]) != word {
				t.Errorf("read %q, %v", got[:n], err)
			}
			if n, err := c.Write([]byte(word)); err != nil || n != len(word) {
				t.Errorf("wrote %d, %v", n, err)
			}
			worker.WantDataBytes(1, []byte(word), noEnd)
		}
		c.CloseSend()
		worker.WantDataBytes(1, nil, end)
		worker.WriteHeaders(1, end, "grpc-status", "0")
		if _, err := c.Read(got); !errors.Is(err, io.EOF) {
			t.Errorf("read: %v", err)
		}
		if _, err := c.Write([]byte("more")); !errors.Is(err, io.EOF) {
			t.Errorf("wrote behind the end: %v", err)
		}
		c.Close()

		open(t, l, &c, LocalRequest{Head: headOf(request(hello)...), Body: hi()})
		worker.WantHeaders(3, noEnd)
		worker.WantDataBytes(3, hi(), noEnd)
		worker.Skip(testkit.RST)
		worker.WriteHeaders(3, end, append(responseHead(), "grpc-status", "9")...)
		synctest.Wait()
		if _, err := c.Write([]byte("nobody reads this")); !errors.Is(err, io.EOF) {
			t.Errorf("wrote: %v", err)
		}
		wantCode(t, &c, grpcwire.FailedPrecondition, "")
		c.Close()
	})
}

// What the caller does not read gives the worker no credit: its windows and what is
// read ahead, and no more (R9, R11).
func TestLocalCallerThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = streamWindow + 256<<10
		g := newPipeRig(t, func(o *Options) { o.AbsorbBytes = 256 << 10 })
		_, worker := g.pipeWorker("w1", 1)
		worker.Refill()
		var c LocalCall
		open(t, g.local(Caller{}), &c, LocalRequest{Head: headOf(request(hello)...), End: true})
		worker.WantHeaders(1, end)
		done := make(chan struct{})
		go func() { // ends when the answer is taken
			defer close(done)
			worker.WriteHeaders(1, noEnd, responseHead()...)
			worker.WriteBody(1, end, make([]byte, 4<<20))
		}()
		synctest.Wait()
		g.each(func(st *stand) {
			for cc := range st.callers {
				if cc.held < streamWindow || cc.held > 2*most {
					t.Errorf("%d bytes are accounted for", cc.held)
				}
			}
		})
		if used := g.budget.Used(); used > 3*most {
			t.Errorf("%d bytes are held", used)
		}
		got, err := io.ReadAll(&c)
		if err != nil || len(got) != 4<<20 {
			t.Errorf("read %d bytes, %v", len(got), err)
		}
		<-done
		c.Close()
	})
}

// A call may be given up wherever it is: before its HEADERS are looked at, in the
// queue, at its worker, behind its answer.
func TestLocalCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t)
		_, worker := g.pipeWorker("w1", 1)
		l := g.local(Caller{})
		var first, second, third LocalCall
		ask := LocalRequest{Head: headOf(request(hello)...), End: true}
		open(t, l, &first, ask)
		worker.WantHeaders(1, end)
		open(t, l, &second, ask)
		g.wantWaiting(1)
		second.Cancel()
		second.Cancel()
		g.wantWaiting(0)
		wantCode(t, &second, grpcwire.Cancelled, "")
		if _, err := second.Header(); !errors.Is(err, ErrCallCut) {
			t.Errorf("header: %v", err)
		}
		second.Close()
		first.Cancel()
		worker.WantRST(1, http2.ErrCodeCancel)
		first.Close()
		l.st.do(func() { // the turn comes only behind this
			if conn, err := l.conn(); err == nil {
				third.begin(l)
				conn.Open(&third.up, true, ask.Head)
				third.cancel()
			}
		})
		synctest.Wait()
		third.Close()
		open(t, l, &third, ask)
		worker.WantHeaders(3, end)
		reply(worker, 3)
		wantAnswer(t, &third)
		third.Cancel()
		wantCode(t, &third, grpcwire.OK, "")
		third.Close()
		if codes := g.Stats().of(t, hello).Codes; codes["OK"] != 1 {
			t.Errorf("counted: %v", codes)
		}
	})
}

// Options.MaxStreams bounds a Local as any connection, also before its greeting.
func TestLocalCallsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 150
		g := newPipeRig(t, func(o *Options) { o.MaxStreams = most })
		l := g.local(Caller{})
		calls := make([]LocalCall, most+1)
		for i := range calls {
			err := l.Open(&calls[i], LocalRequest{Head: headOf(request(hello)...), End: true})
			if want := map[bool]error{i == most: ErrTooManyCalls}[true]; !errors.Is(err, want) {
				t.Fatalf("call %d: %v", i, err)
			}
		}
		calls[0].Close()
		open(t, l, &calls[0], LocalRequest{Head: headOf(request(hello)...), End: true})
		for i := range most {
			calls[i].Close()
		}
	})
}

// When the relay drains, calls come to their end, and no further ones begin.
func TestLocalDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t)
		_, worker := g.pipeWorker("w1", 2)
		l, idle := g.local(Caller{}), g.local(Caller{})
		var done, cut, late LocalCall
		ask := LocalRequest{Head: headOf(request(hello)...), End: true}
		open(t, l, &done, ask)
		open(t, l, &cut, ask)
		worker.WantHeaders(1, end)
		worker.WantHeaders(3, end)
		drained := make(chan int, 1)
		go func() { drained <- g.Drain(time.Minute, nil) }() // ends when the calls have
		pass(10 * time.Second)
		open(t, idle, &late, ask) // its turn to leave has not come
		reply(worker, 1)
		worker.WantHeaders(5, end)
		reply(worker, 5)
		wantAnswer(t, &late)
		late.Close()
		wantAnswer(t, &done)
		worker.Skip(testkit.RST)
		if n := <-drained; n != 1 {
			t.Errorf("%d calls were cut", n)
		}
		for _, l := range []*Local{l, idle} {
			if err := l.Open(&late, ask); !errors.Is(err, ErrClosed) {
				t.Errorf("open behind the drain: %v", err)
			}
		}
		if _, err := io.ReadAll(&cut); err != nil {
			t.Errorf("read: %v", err)
		}
		wantCode(t, &cut, grpcwire.Unavailable, "cabrank: shutting down")
		done.Close()
		cut.Close()
	})
}

// Whoever waits is woken when the Local or the relay is closed.
func TestLocalClose(t *testing.T) {
	for _, by := range []struct {
		name    string
		shut    func(*rig, *Local)
		code    grpcwire.Code
		message string
	}{
		{"local", func(_ *rig, l *Local) { l.Close(); l.Close() }, grpcwire.Cancelled, ""},
		{"relay", func(g *rig, _ *Local) { g.Close() }, grpcwire.Unavailable, "cabrank: shutting down"},
		{"rule", func(_ *rig, l *Local) {
			for range 5 { // two are allowed, and one a second
				var c LocalCall
				open(t, l, &c, LocalRequest{Head: headOf(request(hello)...), End: true})
				c.Close()
			}
			synctest.Wait()
			l.Close()
		}, grpcwire.Unavailable, ""},
	} {
		t.Run(by.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newPipeRig(t, func(o *Options) { o.Resets = 1 })
				l := g.local(Caller{})
				var reads, writes LocalCall
				ends := make(chan error, 2)
				open(t, l, &reads, LocalRequest{Head: headOf(request(hello)...), End: true})
				open(t, l, &writes, LocalRequest{Head: headOf(request(hello)...)})
				go func() { // both end by shut
					_, err := reads.Header()
					ends <- err
				}()
				go func() {
					_, err := writes.Write(make([]byte, 1<<20))
					ends <- err
				}()
				synctest.Wait()
				by.shut(g, l)
				for range 2 {
					if err := <-ends; !errors.Is(err, ErrCallCut) && !errors.Is(err, io.EOF) {
						t.Errorf("got %v", err)
					}
				}
				wantCode(t, &reads, by.code, by.message)
				if err := l.Open(&reads, LocalRequest{}); !errors.Is(err, ErrClosed) {
					t.Errorf("open: %v", err)
				}
				reads.Close()
				writes.Close()
				writes.Close()
				new(LocalCall).Close()
			})
		})
	}
}

// A caller in this process learns whether the queue has taken its call before there is
// an answer, and by which status it was refused otherwise.
func TestLocalTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t, func(o *Options) { o.QueueLength = 1 })
		_, worker := g.pipeWorker("w1", 1)
		l := g.local(Caller{})
		var running, waiting, tooMany, late LocalCall
		ask := LocalRequest{Head: headOf(request(hello)...), Body: hi(), End: true}
		want := func(c *LocalCall, status int) {
			t.Helper()
			if got := c.Taken(); got != status {
				code, message := c.Status()
				t.Errorf("%d, want %d: %v %q", got, status, code, message)
			}
		}
		open(t, l, &running, ask)
		want(&running, 0)
		worker.Skip(testkit.Headers)
		open(t, l, &waiting, ask)
		want(&waiting, 0)
		open(t, l, &tooMany, ask)
		want(&tooMany, 503)
		wantCode(t, &tooMany, grpcwire.ResourceExhausted, "cabrank: queue full")
		if _, err := io.ReadAll(&tooMany); err != nil {
			t.Error(err)
		}
		wantCode(t, &tooMany, grpcwire.ResourceExhausted, "cabrank: queue full")
		l.Close()
		want(&waiting, 0)
		other := g.local(Caller{})
		open(t, other, &late, LocalRequest{Head: headOf(request(hello, "Upper", "case")...)})
		want(&late, 503)
		for _, c := range []*LocalCall{&running, &waiting, &tooMany, &late} {
			c.Close()
		}
	})
}

// What a key may do is refused with 429.
func TestLocalNotTakenByRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t, func(o *Options) { o.Keys = Keys{By: ByPeer, Concurrent: 1} })
		_, worker := g.pipeWorker("w1", 2)
		l := g.local(Caller{Identity: "somebody"})
		var first, second LocalCall
		ask := LocalRequest{Head: headOf(request(hello)...), Body: hi(), End: true}
		open(t, l, &first, ask)
		worker.Skip(testkit.Headers)
		open(t, l, &second, ask)
		if got := second.Taken(); got != 429 {
			t.Errorf("%d", got)
		}
		first.Close()
		second.Close()
	})
}
