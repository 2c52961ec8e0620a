package shard

import (
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/h2"
)

// unary makes calls over memory, one in each turn, and answers them with what they
// have sent.
type unary struct {
	*Shard
	caller, callee *Link
	up, down       h2.Stream
	head, answer   []byte
	tail, body     []byte
	over           bool
	left           int
	done           chan struct{}
}

func newUnary(h *host, body int) *unary {
	u := &unary{Shard: h.Shard, over: true, body: make([]byte, body)}
	for _, f := range []string{":method=POST", ":scheme=http", ":path=/test.Greeter/Hello", ":authority=a", "content-type=application/grpc", "te=trailers"} {
		name, value := f, ""
		for i := 1; i < len(f); i++ {
			if f[i] == '=' {
				name, value = f[:i], f[i+1:]
				break
			}
		}
		u.head = h2.AppendField(u.head, name, value)
	}
	u.answer = h2.AppendField(h2.AppendField(nil, ":status", "200"), "content-type", "application/grpc")
	u.tail = h2.AppendField(nil, "grpc-status", "0")
	h.do(func() {
		u.caller, u.callee = h.NewLink(h.config(false), u, u), h.NewLink(h.config(true), u, u)
		h.Join(u.caller, u.callee)
	})
	return u
}

// calls makes so many calls and waits for the last.
func (u *unary) calls(n int) {
	u.left, u.done = n, make(chan struct{})
	u.Post(u)
	<-u.done
}

// Run implements Task: the last call is over, and the next begins.
func (u *unary) Run(time.Duration) {
	if !u.over {
		panic("the call did not end in its turn")
	}
	if u.left == 0 {
		close(u.done)
		return
	}
	u.left--
	u.over = false
	u.up.Clear()
	u.caller.Conn.Open(&u.up, false, u.head)
	u.caller.Conn.WriteData(&u.up, u.body, true)
	u.Post(u)
}

func (u *unary) Accept(*h2.Conn, *h2.Block) *h2.Stream { u.down.Clear(); return &u.down }
func (u *unary) GoAway(*h2.Conn, uint32, h2.ErrCode)   {}
func (u *unary) Pong(*h2.Conn, [8]byte)                {}
func (u *unary) TooLarge(*h2.Stream, bool)             {}
func (u *unary) Reset(*h2.Stream, h2.ErrCode, bool)    {}
func (u *unary) Lost(*h2.Stream, bool)                 {}
func (u *unary) Writable(*h2.Stream)                   {}
func (u *unary) LinkClosed(*Link, error)               {}

func (u *unary) Headers(s *h2.Stream, _ *h2.Block, end bool) {
	if s == &u.up {
		u.over = end
	} else {
		s.Conn().WriteHeaders(s, false, u.answer)
	}
}

func (u *unary) Data(s *h2.Stream, p []byte, end bool) {
	conn := s.Conn()
	conn.Credit(s, len(p))
	if s == &u.up {
		return
	}
	conn.WriteData(s, p, false)
	if end {
		conn.WriteHeaders(s, true, u.tail)
	}
}

// BenchmarkMemoryCall is one unary call from one engine to another over memory: as
// h2.BenchmarkUnaryCall, with what the links and one turn for each call cost.
func BenchmarkMemoryCall(b *testing.B) {
	for _, size := range []struct {
		name  string
		bytes int
	}{{"16B", 16}, {"10KiB", 10 << 10}} {
		b.Run(size.name, func(b *testing.B) {
			u := newUnary(newHost(b), size.bytes)
			u.calls(100)
			b.ReportAllocs()
			b.ResetTimer()
			u.calls(b.N)
		})
	}
}
