package relay

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"testing"
	"testing/synctest"

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

// The connection ends some seconds after the last call, and the next call makes
// another one; calls that are open keep it.
func TestLocalConnectionIsMadeWhenNeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t)
		_, worker := g.pipeWorker("w1", 2)
		l := g.local(Caller{})
		connections := func() (n int) {
			g.each(func(st *shardState) { n = len(st.callers) })
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
		if n := g.Stats().Disconnects[string(ofCaller)][reasonIdle]; n != 0 {
			t.Errorf("%d callers were sent away", n)
		}
		open(t, l, &c, LocalRequest{Head: headOf(request(hello)...), End: true})
		worker.WantHeaders(3, end)
		reply(worker, 3)
		wantAnswer(t, &c)
		c.Close()
	})
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

// The worker gets no credit for unread bytes: no more wait than its windows and the part
// that is read ahead (R9, R11).
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
		g.each(func(st *shardState) {
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
