package relay

import (
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

// shop brings in a ready endpoint with a worker of net/http behind it.
func (g *rig) shop(slots int, answer http.HandlerFunc) {
	g.t.Helper()
	ln := testkit.Listen(g.t)
	server := &http.Server{Handler: answer, Protocols: new(http.Protocols), ReadHeaderTimeout: soon}
	server.Protocols.SetUnencryptedHTTP2(true)
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }() // ended by Close
	g.t.Cleanup(func() {
		_ = server.Close()
		<-served
	})
	g.Up(g.AddEndpoint("w1", slots, true), "tcp", ln.Addr().String())
}

// messages answers each call with so many, one a millisecond, and keeps its head.
func messages(n int, head *atomic.Pointer[http.Header]) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		head.Store(&r.Header)
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/grpc")
		for range n {
			<-time.After(time.Millisecond)
			_, _ = w.Write(hi())
			_ = http.NewResponseController(w).Flush()
		}
		w.Header().Set(http.TrailerPrefix+"Grpc-Status", "0")
	}
}
