package relay

import (
	"bytes"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/callers"
	"github.com/cabrank/cabrank/internal/testkit"
)

// echo answers a call with what it sends, as it comes.
func echo(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/grpc")
	w.Header().Set("Trailer", "Grpc-Status")
	w.WriteHeader(http.StatusOK)
	buf := make([]byte, 64<<10)
	for {
		n, err := r.Body.Read(buf)
		if _, gone := w.Write(buf[:n]); gone != nil {
			return
		}
		_ = http.NewResponseController(w).Flush()
		if err != nil {
			break
		}
	}
	w.Header().Set("Grpc-Status", "0")
}

// echoCall sends bytes in pieces and reads them back at the same time. It returns
// why it ended.
func echoCall(c *LocalCall, l *Local, send []byte, piece int) ([]byte, error) {
	first := send[:min(piece, len(send))]
	if err := l.Open(c, LocalRequest{Head: headOf(request("/test.Greeter/Echo")...), Body: first, End: len(first) == len(send)}); err != nil {
		return nil, err
	}
	wrote := make(chan struct{})
	go func() { // ends when all is written, or the call has ended
		defer close(wrote)
		for rest := send[len(first):]; len(rest) > 0; {
			n, err := c.Write(rest[:min(piece, len(rest))])
			if err != nil {
				return
			}
			rest = rest[n:]
		}
		c.CloseSend()
	}()
	got, err := io.ReadAll(c)
	<-wrote
	return got, err
}

func pattern(n int) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = byte(i * 7 / 3)
	}
	return p
}

// 10 MiB each way at once, while others of the same shard are served.
func TestLocalLargeCall(t *testing.T) {
	g := newRig(t)
	g.shop(4, echo)
	large, small := g.local(callers.Caller{Address: "192.0.2.1"}), g.local(callers.Caller{Address: "192.0.2.2"})
	send := pattern(10 << 20)
	var over atomic.Bool
	done := make(chan struct{})
	go func() { // ends with the call
		defer close(done)
		defer over.Store(true)
		var c LocalCall
		defer c.Close()
		got, err := echoCall(&c, large, send, 1<<20)
		testkit.Want(t, err == nil && bytes.Equal(got, send), "%d bytes came back, %v", len(got), err)
	}()
	served, slowest := 0, time.Duration(0)
	for ; !over.Load(); served++ {
		var c LocalCall
		began := time.Now()
		if got, err := echoCall(&c, small, hi(), 100); err != nil || !bytes.Equal(got, hi()) {
			t.Fatalf("got %q, %v", got, err)
		}
		slowest = max(slowest, time.Since(began))
		c.Close()
	}
	<-done
	t.Logf("%d small calls beside it, the slowest took %v", served, slowest)
	testkit.Want(t, served >= 5, "%d small calls were served beside it", served)
}
