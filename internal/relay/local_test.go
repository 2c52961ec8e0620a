package relay

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/cabrank/cabrank/internal/grpcwire"
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

// A call may be given up before its HEADERS are looked at, and is used again then.
func TestLocalCancelAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t)
		_, worker := g.pipeWorker("w1", 1)
		l := g.local(Caller{})
		var c LocalCall
		ask := LocalRequest{Head: headOf(request(hello)...), End: true}
		l.st.do(func() { // the turn comes only behind this
			if conn, err := l.conn(); err == nil {
				c.begin(l)
				conn.Open(&c.up, true, ask.Head)
				c.cancel()
			}
		})
		synctest.Wait()
		c.Close()
		open(t, l, &c, ask)
		worker.WantHeaders(1, end)
		reply(worker, 1)
		wantAnswer(t, &c)
		c.Close()
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
