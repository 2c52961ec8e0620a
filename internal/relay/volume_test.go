package relay

import (
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/cabrank/cabrank/internal/testkit"
)

// costlyCalls is how many calls costly has.
const costlyCalls = 5000

// costly returns bytes that take long to handle: HEADERS of some 40 octets that name an entry
// of the table three times, so that each is 12 KiB here.
func costly(t *testing.T) []byte {
	t.Helper()
	head := append(block(request(checkPath)...), 0xbe, 0xbe, 0xbe)
	opening := frames(t, func(f *http2.Framer) error {
		_ = f.WriteSettings()
		return f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, EndStream: true, EndHeaders: true,
			BlockFragment: append(block(request(checkPath)...), literal("b", strings.Repeat("b", 3800))...)})
	})
	all := append([]byte(http2.ClientPreface), opening...)
	return append(all, frames(t, func(f *http2.Framer) error {
		for n := range uint32(costlyCalls) {
			if err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: 2*n + 3, EndStream: true, EndHeaders: true, BlockFragment: head}); err != nil {
				return err
			}
		}
		return nil
	})...)
}

// literal encodes a field that the peer is to put into its table.
func literal(name, value string) []byte {
	enc := append([]byte{0x40, byte(len(name))}, name...)
	rest := len(value) - 127
	enc = append(enc, 127)
	for ; rest >= 128; rest /= 128 {
		enc = append(enc, byte(rest%128+128))
	}
	return append(append(enc, byte(rest)), value...)
}

// R11: connections whose bytes take long to handle do not keep others waiting until
// all of them are: each has so much of a turn, and all of them together so much.
func TestCostlyBytesWaitTheirTurn(t *testing.T) {
	const attackers = 8
	g := newRig(t)
	script := costly(t)
	good := g.caller()
	good.AnyOrder()
	var all []net.Conn
	for range attackers {
		nc, err := net.Dial("tcp", g.addr)
		testkit.Must(t, err)
		t.Cleanup(func() { _ = nc.Close() })
		all = append(all, nc)
	}
	testkit.Eventually(t, soon, "the connections", func() bool { return g.sources.Open.Load() == attackers+1 })
	sent := 0
	g.shards[0].do(func() { // nothing is read meanwhile
		for _, nc := range all {
			_ = nc.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
			n, _ := nc.Write(script) // as much as the system takes
			sent += n
		}
		good.WriteHeaders(1, end, request(checkPath)...)
	})
	good.WantHeaders(1, noEnd)
	handled, calls := g.callsOpened(), sent*costlyCalls/len(script)
	testkit.Want(t, handled <= calls/4, "%d of about %d calls of the attackers were handled before the one behind them", handled, calls)
}

// callsOpened is how many streams all callers have opened.
func (g *rig) callsOpened() (n int) {
	g.each(func(st *shardState) {
		for cc := range st.callers {
			n += int(cc.link.Conn.LastPeerStream()+1) / 2
		}
	})
	return n
}
