package relay

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/cabrank/cabrank/internal/testkit"
)

// cutting is a stream that is ended by cabrank while its worker is in the middle of
// an answer.
type cutting struct {
	*rig
	e              *Endpoint
	worker, caller *testkit.Peer
	message        []byte // of 20 bytes
	why            string // what the caller is told
}

// newCutting brings the stream to where its caller has had one whole message. A
// caller with a window cannot take more than that many bytes.
func newCutting(t *testing.T, window uint32) *cutting {
	t.Helper()
	x := &cutting{rig: newPipeRig(t), message: append([]byte{0, 0, 0, 0, 15}, bytes.Repeat([]byte{'m'}, 15)...), why: draining}
	x.e, x.worker = x.pipeWorker("w1", 1)
	x.caller = testkit.NewCaller(t, x.dialPipe())
	x.caller.Greet(http2.Setting{ID: http2.SettingInitialWindowSize, Val: window})
	x.caller.Skip(testkit.WindowUpdate, testkit.GoAway, testkit.Ping)
	x.caller.WriteHeaders(1, noEnd, request(hello)...)
	x.worker.WantHeaders(1, noEnd)
	x.worker.WriteHeaders(1, noEnd, responseHead()...)
	x.caller.WantFields(1, noEnd, responseHead()...)
	x.send(x.message)
	x.gets(x.message)
	return x
}

func (x *cutting) send(p []byte) { x.worker.WriteData(1, noEnd, p); synctest.Wait() }
func (x *cutting) gets(p []byte) { x.t.Helper(); x.caller.WantDataBytes(1, p, noEnd) }

func (x *cutting) told() {
	x.t.Helper()
	x.caller.WantFields(1, end, "grpc-status", "14", "grpc-message", x.why)
	x.caller.WantRST(1, http2.ErrCodeNo) // it had not ended its request
}

// cut ends the stream in one of the two ways.
func (x *cutting) cut(how string) (wait func()) {
	if how == "worker draining" {
		x.Cut(x.e)
		return synctest.Wait
	}
	x.why = "cabrank: shutting down"
	hurry := make(chan struct{})
	close(hurry)
	wait = x.drain(time.Minute, hurry)
	synctest.Wait()
	return wait
}

// cuts has such a stream end in each of the two ways.
func cuts(t *testing.T, window uint32, test func(x *cutting, how string)) {
	t.Helper()
	for _, how := range []string{"worker draining", "shutting down"} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(newCutting(t, window), how) })
		})
	}
}

// R13, R17: between two messages the trailers come at once.
func TestEndsBetweenMessages(t *testing.T) {
	cuts(t, 1000, func(x *cutting, how string) {
		began := time.Now()
		wait := x.cut(how)
		x.told()
		wantTook(t, began, 0)
		x.worker.WantRST(1, http2.ErrCodeCancel)
		wait()
	})
}

// If nothing comes behind the message there is no long wait for it.
func TestEndsBehindLastMessage(t *testing.T) {
	cuts(t, 1000, func(x *cutting, how string) {
		x.send(x.message[:10])
		x.gets(x.message[:10])
		wait := x.cut(how)
		x.send(x.message[10:])
		began := time.Now()
		x.gets(x.message[10:])
		x.told()
		wantTook(t, began, trailersTime)
		x.worker.WantRST(1, http2.ErrCodeCancel)
		wait()
	})
}

// R13, R17: a message of which the caller has seen the beginning comes to its end
// first, in pieces of any size, and nothing of the next one follows.
func TestEndsBehindMessage(t *testing.T) {
	for _, first := range []int{1, 4, 5, 6, 19} {
		for _, step := range []int{1, 7, 100} {
			cuts(t, 1000, func(x *cutting, how string) {
				x.send(x.message[:first])
				x.gets(x.message[:first])
				wait := x.cut(how)
				x.worker.WantIdle()
				rest := append(x.message[first:len(x.message):len(x.message)], x.message...)
				for len(rest) > 20 {
					n := min(step, len(rest))
					x.send(rest[:n])
					rest = rest[n:]
				}
				x.gets(x.message[first:])
				x.told()
				x.worker.WantRST(1, http2.ErrCodeCancel)
				wait()
			})
		}
	}
}

// The wait for the rest of a message is bounded, and ends with its worker.
func TestMessageThatDoesNotEnd(t *testing.T) {
	for name, after := range map[string]func(*testkit.Peer) time.Duration{
		"it hangs": func(*testkit.Peer) time.Duration { return messageTime },
		"it dies":  func(w *testkit.Peer) time.Duration { w.Close(); return 0 },
		"it resets": func(w *testkit.Peer) time.Duration {
			w.WriteRST(1, http2.ErrCodeInternal)
			return 0
		},
	} {
		t.Run(name, func(t *testing.T) {
			cuts(t, 1000, func(x *cutting, how string) {
				x.send(x.message[:10])
				x.gets(x.message[:10])
				x.worker.Skip(testkit.RST)
				began := time.Now()
				wait := x.cut(how)
				took := after(x.worker)
				x.told()
				wantTook(t, began, took)
				wait()
			})
		})
	}
}

// A worker that ends the stream itself meanwhile has the last word.
func TestWorkerEndsFirst(t *testing.T) {
	cuts(t, 1000, func(x *cutting, how string) {
		x.send(x.message[:10])
		x.gets(x.message[:10])
		wait := x.cut(how)
		x.worker.Batch(func() {
			x.worker.WriteData(1, noEnd, x.message[10:])
			x.worker.WriteHeaders(1, end, "grpc-status", "0")
		})
		x.gets(x.message[10:])
		x.caller.WantFields(1, end, "grpc-status", "0")
		x.caller.WantRST(1, http2.ErrCodeNo)
		x.worker.Skip(testkit.RST)
		wait()
	})
}

// R9, R13: what was read from the worker and waits for its caller goes out as whole
// messages; the beginning of another one is dropped.
func TestAbsorbedMessagesGoFirst(t *testing.T) {
	for _, seen := range []int{0, 7} { // bytes that the caller has of the next message
		for _, part := range []int{0, 3, 11} { // bytes that are here of the last one
			cuts(t, uint32(20+seen), func(x *cutting, how string) {
				x.send(append(bytes.Repeat(x.message, 3), x.message[:part]...))
				if seen > 0 {
					x.gets(x.message[:seen])
				}
				wait := x.cut(how)
				x.worker.WantRST(1, http2.ErrCodeCancel)
				pass(messageTime / 2)
				x.caller.WriteWindowUpdate(1, 1000)
				x.gets(bytes.Repeat(x.message, 3)[seen:])
				x.told()
				wait()
			})
		}
	}
}

// R17: a caller that does not read is told at the end of a shutdown all the same.
func TestShutdownOfDeafCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newCutting(t, 20)
		x.send(bytes.Repeat(x.message, 3))
		began := time.Now()
		wait := x.cut("shutting down")
		x.told()
		wantTook(t, began, messageTime)
		x.worker.WantRST(1, http2.ErrCodeCancel)
		wait()
	})
}

// R13: a lost worker's last whole message is the caller's, and the beginning of
// another one is dropped if the caller has seen nothing of it.
func TestLostInMessage(t *testing.T) {
	for _, window := range []uint32{20, 45, 65} {
		synctest.Test(t, func(t *testing.T) {
			x := newCutting(t, window)
			x.why = "cabrank: worker lost"
			x.send(append(bytes.Repeat(x.message, 2), x.message[:9]...))
			x.worker.Close()
			synctest.Wait()
			x.caller.WriteWindowUpdate(1, 1000)
			want := bytes.Repeat(x.message, 2)
			if window > 60 { // it is too late for that
				want = append(want, x.message[:9]...)
			}
			x.gets(want)
			x.told()
		})
	}
}

// Bytes that are no messages are passed on as they are.
func TestEndsBehindOtherBytes(t *testing.T) {
	cuts(t, 1000, func(x *cutting, how string) {
		x.send([]byte("<html>"))
		x.gets([]byte("<html>"))
		wait := x.cut(how)
		x.told()
		x.worker.WantRST(1, http2.ErrCodeCancel)
		wait()
	})
}
