package relay

import (
	"bytes"
	"io"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/cabrank/cabrank/internal/callers"
	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/testkit"
)

// local makes a caller in this process, which leaves when the test ends.
func (g *rig) local(c callers.Caller) *Local {
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
	err := l.Open(c, r)
	testkit.Need(t, err == nil, "open: %v", err)
}

// wantAnswer takes the whole answer that reply writes.
func wantAnswer(t testing.TB, c *LocalCall) {
	t.Helper()
	head, err := c.Header()
	if err != nil || !slices.Equal(listOf(head), responseHead()) {
		t.Fatalf("the head: %q, %v", listOf(head), err)
	}
	body, err := io.ReadAll(c)
	testkit.Need(t, err == nil && bytes.Equal(body, hi()), "the body: %q, %v", body, err)
	tail := listOf(c.Trailer())
	testkit.Need(t, slices.Equal(tail, []string{"grpc-status", "0"}), "the trailers: %q", tail)
	wantCode(t, c, grpcwire.OK, "")
}

func wantCode(t testing.TB, c *LocalCall, code grpcwire.Code, message string) {
	t.Helper()
	got, text := c.Status()
	testkit.Need(t, got == code && text == message, "the status: %v %q, want %v %q", got, text, code, message)
}

// A call may be given up before its HEADERS are looked at, and is used again then.
func TestLocalCancelAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t)
		_, worker := g.pipeWorker("w1", 1)
		l := g.local(callers.Caller{})
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
