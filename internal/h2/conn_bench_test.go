package h2

import "testing"

// pair is a caller's engine joined to a worker's by copying bytes. A call is
// opened in the client role and answered by an echo in the server role.
type pair struct {
	budget Budget
	block  Block
	caller *Conn // of a caller's process: client role
	worker *Conn // of a worker's process: server role
	up     Stream
	down   Stream
	done   bool
	body   []byte
	wire   []byte
}

func (p *pair) Dirty(*Conn)                   {}
func (p *pair) Accept(*Conn, *Block) *Stream  { p.down.Clear(); return &p.down }
func (p *pair) GoAway(*Conn, uint32, ErrCode) {}
func (p *pair) Pong(*Conn, [8]byte)           {}
func (p *pair) TooLarge(*Stream, bool)        {}
func (p *pair) Reset(*Stream, ErrCode, bool)  {}
func (p *pair) Lost(*Stream, bool)            {}
func (p *pair) Writable(*Stream)              {}

// Headers answers in the worker's role, and ends the call in the caller's.
func (p *pair) Headers(s *Stream, _ *Block, end bool) {
	if s == &p.up {
		p.done = p.done || end
	} else {
		p.worker.WriteHeaders(s, false, statelessAnswer)
	}
}

// Data echoes in the worker's role.
func (p *pair) Data(s *Stream, b []byte, end bool) {
	s.Conn().Credit(s, len(b))
	if s == &p.up {
		return
	}
	p.worker.WriteData(s, b, false)
	if end {
		p.worker.WriteHeaders(s, true, statelessTrailers)
	}
}

func newPair(body int) *pair {
	p := &pair{body: make([]byte, body), budget: Budget{Total: 64 << 20}, wire: make([]byte, 0, 64<<10)}
	pool := NewPool(&p.budget)
	p.caller = NewConn(testConfig(false), p, pool, &p.block, p)
	p.worker = NewConn(testConfig(true), p, pool, &p.block, p)
	p.carry(p.caller, p.worker)
	p.carry(p.worker, p.caller)
	p.carry(p.caller, p.worker)
	return p
}

// carry brings all output of one engine to the other.
func (p *pair) carry(from, to *Conn) {
	for out := from.Output(); len(out) > 0; out = from.Output() {
		p.wire = append(p.wire[:0], out...)
		from.Sent(len(out))
		if err := to.Feed(p.wire, 0); err != nil {
			panic(err)
		}
	}
}

// call makes one unary call.
func (p *pair) call() bool {
	p.up.Clear()
	p.done = false
	if p.caller.nextID >= maxStreamID/2 {
		p.caller.nextID, p.worker.lastPeer = 1, 0 // a long benchmark
	}
	p.caller.Open(&p.up, false, statelessRequest)
	p.caller.WriteData(&p.up, p.body, true)
	p.carry(p.caller, p.worker)
	p.carry(p.worker, p.caller)
	return p.done && !p.up.Open() && !p.down.Open()
}

// BenchmarkUnaryCall is one call through both roles of the engine: opened,
// written, read, answered, read. A relay does this work once for each call.
func BenchmarkUnaryCall(b *testing.B) {
	for _, size := range []struct {
		name  string
		bytes int
	}{{"16B", 16}, {"10KiB", 10 << 10}} {
		b.Run(size.name, func(b *testing.B) {
			p := newPair(size.bytes)
			b.ReportAllocs()
			for b.Loop() {
				if !p.call() {
					b.Fatal("the call did not end")
				}
			}
		})
	}
}

// A call allocates nothing in the steady state.
func TestCallAllocatesNothing(t *testing.T) {
	for _, size := range []int{16, 10 << 10} {
		p := newPair(size)
		for range 100 {
			p.call()
		}
		if n := testing.AllocsPerRun(1000, func() {
			if !p.call() {
				t.Fatal("the call did not end")
			}
		}); n != 0 {
			t.Errorf("%d bytes: %v allocations for each call", size, n)
		}
		p.caller.Close()
		p.worker.Close()
		if used := p.budget.Used(); used != 0 {
			t.Errorf("%d bytes are in use", used)
		}
	}
}
