package relay

import (
	"bytes"
	"strconv"

	"github.com/cabrank/cabrank/internal/h2"
)

// hopsName is the field that counts the cabranks that a call has passed, through nested
// calls too if workers pass the field on (R10).
const hopsName = "x-cabrank-hops"

// maxHopsRead is the largest count that is read.
const maxHopsRead = 1 << 20

// readHops reads how many cabranks the request has passed, and whether these are too many
// for a chain of services. A queue hides a cycle of calls: nothing fails, all slots wait
// for each other (R10).
func (h *requestHead) readHops(cc *callerConn, b *h2.Block) {
	most := cc.st.relay.settings().MaxHops
	field, found := b.Watched(fieldHops)
	if !found || most == 0 {
		return
	}
	h.hops = hopsOf(field.Value)
	h.tooManyHops = h.hops > most
}

// hopsOf reads a count of hops: the largest number of a list, because libraries join the
// value that they received with the one that they add. Anything else counts as 0: any
// caller can send the field, and in a real cycle the next call has a count written here.
func hopsOf(value []byte) (hops int) {
	for part := range bytes.SplitSeq(value, []byte(",")) {
		n := 0
		for _, c := range bytes.TrimSpace(part) {
			if c < '0' || c > '9' {
				n = 0
				break
			}
			n = min(10*n+int(c-'0'), maxHopsRead)
		}
		hops = max(hops, n)
	}
	return hops
}

// appendHops writes the field for the worker, with one more hop.
func (cc *callerConn) appendHops(head []byte, hops int) []byte {
	value := strconv.AppendInt(cc.st.digits[:0], int64(hops+1), 10)
	return h2.AppendFieldBytes(head, hopsName, value)
}
