package relay

import (
	"strconv"

	"github.com/cabrank/cabrank/internal/h2"
)

// triesName is the field that tells a worker how many attempts came before. Attempts that
// were refused unseen do not count.
//
// Source: gRPC proposal A6, "Exposed Retry Metadata".
const triesName = "grpc-previous-rpc-attempts"

// maxTries is how much the field adds to a header list, as maxAdded.
const maxTries = len(triesName) + 10 + 32

// readTries reads how many attempts the caller made before this call, 0 if the value is not
// a number.
func readTries(value []byte) int {
	n, err := strconv.ParseUint(string(value), 10, 20)
	if err != nil {
		return 0
	}
	return int(n)
}

// openAgain opens the stream of an attempt that is not the first: its header
// block is that of the first but for grpc-timeout, which goes to at, and the
// number of attempts before it.
func (a *attempt) openAgain(conn *h2.Conn, end bool, timeout []byte, at int) {
	h := a.call.head
	head, from, to := h.block, h.triesAt, h.triesEnd
	if from < 0 {
		from, to = len(head), len(head)
	}
	st := a.call.st
	st.tries = h2.AppendFieldBytes(st.tries[:0], triesName, strconv.AppendInt(st.digits[:0], int64(h.tries+a.previous), 10))
	if at <= from {
		conn.Open(&a.up, end, head[:at], timeout, head[at:from], st.tries, head[to:])
		return
	}
	conn.Open(&a.up, end, head[:from], st.tries, head[to:at], timeout, head[at:])
}
