package relay

import (
	"bytes"
	"strconv"

	"github.com/cabrank/cabrank/internal/h2"
)

// hopsName is the field that counts the cabranks which a call has passed,
// nested calls included where workers hand it on (R10).
const hopsName = "x-cabrank-hops"

// maxHopsRead is where reading a count stops: any more says the same.
const maxHopsRead = 1 << 20

// readHops learns how many cabranks the request has passed, and whether that is
// more than a chain of services that is none too long can have. A queue hides a
// cycle of calls: nothing fails, all slots wait for each other (R10).
func (f *form) readHops(cc *callerConn, b *h2.Block) {
	most := cc.st.relay.settings().MaxHops
	field, found := b.Watched(fieldHops)
	if !found || most == 0 {
		return
	}
	f.hops = hopsOf(field.Value)
	f.circling = f.hops > most
}

// hopsOf reads a count of hops: the largest number of a list, since libraries
// join what they received and what they add. What is no number counts as 0: the
// field is anybody's to send, and in a real cycle the next turn has a count that
// was written here.
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

// appendHops writes the field for the worker: one hop more.
func (cc *callerConn) appendHops(head []byte, hops int) []byte {
	value := strconv.AppendInt(cc.st.digits[:0], int64(hops+1), 10)
	return h2.AppendFieldBytes(head, hopsName, value)
}
