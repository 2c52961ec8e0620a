package relay

// waitingSize is what a call that waits takes beside its bytes: its HEADERS and its
// path are in buffers of 1 KiB.
const waitingSize = callSize + 2<<10

// wantHeld compares the bytes that wait for all callers, beside that.
func (g *rig) wantHeld(want int) {
	g.t.Helper()
	g.each(func(st *shardState) {
		for cc := range st.callers {
			want -= cc.held
			for p := cc.waiting.oldest; p != nil; p = p.newer {
				want += callSize + cap(p.of.head.block) + cap(p.of.head.path)
			}
		}
	})
	if want != 0 {
		g.t.Errorf("%d bytes fewer are held than should be", want)
	}
}

// someWaiting returns a call that has been to the rank and can be given up.
func (st *shardState) someWaiting() *call {
	for cc := range st.callers {
		if c := cc.waiting.first(); c != nil && c.state != callGathering {
			return c
		}
	}
	return nil
}
