package relay

import (
	"bytes"
	"testing"
	"testing/synctest"

	"golang.org/x/net/http2"
)

// A worker that sends on behind the end of its answers, or on streams that were
// reset, gets the connection's credit back, so that its other calls go on, and
// no RST_STREAM for each frame (R14).
func TestDataBehindTheEndIsCredited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t)
		_, worker := g.foreign("unruly", 2)
		caller := g.pipeCaller()
		caller.WriteHeaders(1, end, request(hello)...)
		worker.WantHeaders(1, end)
		reply(worker, 1)
		wantReply(caller, 1)
		before := worker.Credit(0)
		const frames = 2 * connWindow / (16 << 10)
		for range frames {
			worker.WriteData(1, noEnd, make([]byte, 16<<10))
		}
		worker.WantIdle()
		if got := worker.Credit(0) - before; got < connWindow {
			t.Errorf("%d bytes of credit for %d sent", got, frames*16<<10)
		}
		caller.WriteHeaders(3, end, request(hello)...)
		worker.WantHeaders(3, end)
		reply(worker, 3)
		wantReply(caller, 3)
	})
}

// RFC 9113 6.9.1: a worker that sends more than the stream's window has its
// stream reset; what came before within the window is the caller's (R13).
func TestStreamWindowExceeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t, func(o *Options) { o.AbsorbBytes = 0 })
		_, worker := g.foreign("unruly", 2)
		caller := g.pipeCaller()
		caller.WriteSettings(noWindow())
		caller.WantSettingsAck()
		caller.AnyOrder()
		for _, stream := range []uint32{1, 3} {
			caller.WriteHeaders(stream, end, request(hello)...)
			worker.WantHeaders(stream, end)
		}
		worker.WriteHeaders(1, noEnd, responseHead()...)
		caller.WantFields(1, noEnd, responseHead()...)
		body := bytes.Repeat([]byte("0123456789abcdef"), streamWindow/16)
		for part := range 4 {
			worker.WriteData(1, noEnd, body[part*16384:][:16384])
		}
		worker.WantIdle()
		worker.WriteData(1, noEnd, []byte("x"))
		worker.WantRST(1, http2.ErrCodeFlowControl)
		worker.WriteData(1, end, body[:16384]) // it does not stop
		worker.WantIdle()
		g.wantInFlight(1)
		caller.WantIdle()
		caller.WriteWindowUpdate(1, 100_000)
		caller.WriteWindowUpdate(3, 100_000)
		caller.WantDataBytes(1, body[:65535], noEnd) // the connection's window
		caller.WriteWindowUpdate(0, 100_000)
		caller.WantDataBytes(1, body[65535:], noEnd)
		caller.WantFields(1, end, "grpc-status", "14", "grpc-message", badResponse)
		reply(worker, 3)
		wantReply(caller, 3)
		worker.WantIdle()
	})
}

// RFC 9113 6.9.2: a worker may shrink its windows below what was sent; nothing
// more comes until it has made good for it.
func TestWindowShrinksBelowSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t)
		_, worker := g.foreign("unruly", 2)
		caller := g.pipeCaller()
		body := bytes.Repeat([]byte("0123456789abcdef"), 2048) // 32 KiB
		caller.WriteHeaders(1, noEnd, request(hello)...)
		caller.WriteData(1, noEnd, body[:16384])
		caller.WriteData(1, noEnd, body[16384:])
		worker.WantHeaders(1, noEnd)
		worker.WantDataBytes(1, body, noEnd)
		worker.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1000})
		worker.WantSettingsAck()
		caller.WriteData(1, end, hi())
		worker.WantIdle()
		worker.WriteWindowUpdate(1, uint32(len(body)-1000))
		worker.WantIdle() // the window is 0 now
		worker.WriteWindowUpdate(1, 1)
		worker.WantDataBytes(1, hi()[:1], noEnd)
		worker.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1005})
		worker.WantSettingsAck()
		worker.WantDataBytes(1, hi()[1:], end)
		reply(worker, 1)
		wantReply(caller, 1)
	})
}
