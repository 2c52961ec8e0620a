package relay

// absorb lets the worker send on although the caller does not read the answer, so
// that the worker finishes and its slot becomes free (R9): the worker gets credit
// back for bytes that wait here. This credit, ahead of the caller, counts against
// three bounds:
//
//   - the call: waiting bytes and those that the worker may still send are together
//     at most Options.AbsorbBytes, or one window if that is more;
//   - the connection: half of Limits.Buffer, so that a caller with slow readers can
//     still begin new calls;
//   - the process: half of what may be buffered. While more than half of that is in
//     use, no credit is given.
//
// Credit goes out in halves of the first window, and does not make the window grow:
// only callers that read get larger windows (R11).
func (c *call) absorb() {
	conn := c.main.up.Conn()
	if conn == nil || c.respEnd {
		return
	}
	step := min(c.main.up.Window(), int(c.st.conf.up.Window)) / 2
	owed := c.main.up.Debt() // of bytes that were taken
	unpaid := len(c.resp) - c.respSent - c.ahead + owed
	if step == 0 || unpaid < step {
		return
	}
	o, cc := c.st.relay.settings(), c.caller
	room := min(o.AbsorbBytes-c.main.up.Window()-c.ahead, o.Limits.Buffer/2-cc.ahead) + owed
	n := min(unpaid, room) / step * step
	loan := max(n-owed, 0)
	if n <= 0 || c.st.relay.budget.Pressed() {
		return
	}
	if r := c.st.relay; r.absorbed.Add(int64(loan)) > r.bufferTotal()/2 {
		r.absorbed.Add(int64(-loan))
		return
	}
	c.ahead += loan
	cc.ahead += loan
	conn.Advance(&c.main.up, n)
}

// repay subtracts n bytes from the credit that was given ahead: the caller has taken
// them, or never will. It returns how many bytes were not part of that credit.
func (c *call) repay(n int) int {
	paid := min(n, c.ahead)
	if paid > 0 {
		c.ahead -= paid
		c.caller.ahead -= paid
		c.st.relay.absorbed.Add(int64(-paid))
	}
	return n - paid
}
