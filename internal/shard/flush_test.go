package shard

import (
	"net"
	"sync/atomic"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

// counted is a connection that counts what is written in one go.
type counted struct {
	net.Conn
	writes *atomic.Int64
}

func (c counted) Write(p []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(p)
}

// What was ready in one go leaves in one write: twenty calls that come together
// are answered together.
func TestAnswersLeaveTogether(t *testing.T) {
	const calls = 20
	testkit.CheckLeaks(t)
	h := newHost(t)
	ours, theirs := net.Pipe()
	var writes atomic.Int64
	h.serve(counted{ours, &writes})
	p := testkit.NewCaller(t, theirs)
	p.Greet()
	p.WritePing([8]byte{1})
	p.WantPingAck([8]byte{1}) // the greeting is over
	before := writes.Load()
	p.Batch(func() {
		for i := range uint32(calls) {
			request(p, 2*i+1, testkit.End, "/echo")
		}
	})
	for i := range uint32(calls) {
		p.WantHeaders(2*i+1, testkit.NoEnd)
		wantEnd(p, 2*i+1)
	}
	if n := writes.Load() - before; n != 1 {
		t.Errorf("%d calls were answered by %d writes, want 1", calls, n)
	}
}
