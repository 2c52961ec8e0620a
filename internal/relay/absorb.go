package relay

// absorb has the worker send on although the caller does not take the answer,
// so that the worker comes to its end and the slot is free (R9): credit goes back
// for bytes that wait here. What is given so, ahead of the caller, is counted in
// three ledgers, and none may overflow:
//
//   - of the call: what waits and what the worker may still send are together no
//     more than Options.AbsorbBytes, or one window if that is more;
//   - of the connection: half of Limits.Buffer, so that a caller with slow
//     readers on it can still begin new calls;
//   - of the process: half of what may be buffered. Nothing is given while more
//     than half of that is in use anyway.
//
// Credit leaves in halves of the first window, and the window does not grow by it:
// that is for callers that take their bytes (R11).
func (c *call) absorb() {
	conn := c.up.Conn()
	if conn == nil || c.respEnd {
		return
	}
	step := min(c.up.Window(), int(c.st.conf.up.Window)) / 2
	owed := c.up.Debt() // of bytes that were taken
	unpaid := len(c.resp) - c.respSent - c.ahead + owed
	if step == 0 || unpaid < step {
		return
	}
	o, cc := c.st.relay.settings(), c.caller
	room := min(o.AbsorbBytes-c.up.Window()-c.ahead, o.Limits.Buffer/2-cc.ahead) + owed
	n := min(unpaid, room) / step * step
	loan := max(n-owed, 0)
	if n <= 0 || c.st.relay.budget.Pressed() || !c.st.relay.lend(loan) {
		return
	}
	c.ahead += loan
	cc.ahead += loan
	conn.Advance(&c.up, n)
}

// repay takes n bytes that the caller has taken, or never will, off the credit
// that was given ahead, and returns how many of them were not part of it.
func (c *call) repay(n int) int {
	paid := min(n, c.ahead)
	if paid > 0 {
		c.ahead -= paid
		c.caller.ahead -= paid
		c.st.relay.absorbed.Add(int64(-paid))
	}
	return n - paid
}

// lend notes credit for n bytes in the ledger of the process, if it has room.
func (r *Relay) lend(n int) bool {
	if r.absorbed.Add(int64(n)) <= r.bufferTotal()/2 {
		return true
	}
	r.absorbed.Add(int64(-n))
	return false
}
