package relay

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/cabrank/cabrank/internal/testkit"
)

// stage is how far the answer of a call has come when its worker misbehaves.
type stage int

const (
	asked    stage = iota // the worker has the whole request
	begun                 // the caller has the answer's HEADERS
	flowing               // and a first message
	finished              // and the trailers
)

func (s stage) String() string {
	return [...]string{"asked", "begun", "flowing", "finished"}[s]
}

// unruly is a scene: an unruly worker with the calls 1 and 3 of one caller, a
// good worker with call 1 of another caller, and room for more on both.
type unruly struct {
	*rig
	t        *testing.T
	endpoint *Endpoint // the unruly worker's
	worker   *testkit.Peer
	caller   *testkit.Peer
	good     *testkit.Peer
	beside   *testkit.Peer
}

// newUnruly sets the scene in a synctest bubble. Nobody understands refusals
// of the two workers, so that HEADERS are not held back (R2). more are fields of
// call 3.
func newUnruly(t *testing.T, at stage, more ...string) *unruly {
	t.Helper()
	u := &unruly{rig: newPipeRig(t), t: t}
	u.endpoint, u.worker = u.foreign("unruly", 4)
	u.caller, u.beside = u.pipeCaller(), u.pipeCaller()
	u.caller.AnyOrder()
	u.worker.AnyOrder()
	u.caller.WriteHeaders(1, end, request(hello)...)
	u.worker.WantHeaders(1, end)
	u.caller.WriteHeaders(3, end, request(hello, more...)...)
	u.worker.WantHeaders(3, end)
	_, u.good = u.foreign("good", 4)
	u.beside.WriteHeaders(1, end, request(hello)...)
	u.good.WantHeaders(1, end)
	u.advance(at)
	return u
}

// foreign brings in an endpoint that cabrank did not start.
func (g *rig) foreign(name string, slots int) (*Endpoint, *testkit.Peer) {
	g.t.Helper()
	e, p, _ := g.foreignConn(name, slots)
	return e, p
}

// foreignConn returns the worker's connection, too: closed by itself, it ends
// without anything more being read from it.
func (g *rig) foreignConn(name string, slots int) (*Endpoint, *testkit.Peer, net.Conn) {
	g.t.Helper()
	e := g.AddEndpoint(name, slots, false)
	far := g.pipe(e)
	p := testkit.NewWorker(g.t, far)
	p.Greet()
	p.Skip(testkit.WindowUpdate)
	return e, p, far
}

// advance brings the answer of call 1 as far as the stage says.
func (u *unruly) advance(at stage) {
	u.t.Helper()
	if at >= begun {
		u.worker.WriteHeaders(1, noEnd, responseHead()...)
		u.caller.WantFields(1, noEnd, responseHead()...)
	}
	if at >= flowing {
		u.worker.WriteData(1, noEnd, hi())
		u.caller.WantDataBytes(1, hi(), noEnd)
	}
	if at >= finished {
		u.worker.WriteHeaders(1, end, "grpc-status", "0")
		u.caller.WantFields(1, end, "grpc-status", "0")
	}
}

// wantFailed has the caller take an ending of cabrank's own, in the form that
// the stage asks for (R13).
func (u *unruly) wantFailed(stream uint32, at stage, code, message string) {
	u.t.Helper()
	if at == asked {
		wantStatus(u.caller, stream, code, message)
		return
	}
	u.caller.WantFields(stream, end, "grpc-status", code, "grpc-message", message)
}

// wantCalm says that nobody else has noticed anything: the callers and the good
// worker have heard nothing, what runs beside is answered, and the next call of
// the caller is served by the good worker. No lease is left.
func (u *unruly) wantCalm() {
	u.t.Helper()
	u.beside.WantIdle()
	u.good.WantIdle()
	u.caller.WantIdle()
	reply(u.good, 1)
	wantReply(u.beside, 1)
	u.Down(u.endpoint)
	u.caller.WriteHeaders(101, end, request(hello)...)
	u.good.WantHeaders(3, end)
	reply(u.good, 3)
	wantReply(u.caller, 101)
	u.wantInFlight(0)
}

const badResponse = "cabrank: bad response from worker"

// misdeed is something that a worker must not do on stream 1.
type misdeed struct {
	name string
	at   stage
	do   func(w *testkit.Peer)
	code http2.ErrCode // of the RST_STREAM or GOAWAY that the worker gets
}

// fields has the worker send these fields.
func fields(kv ...string) func(*testkit.Peer) {
	return func(w *testkit.Peer) { w.WriteHeaders(1, noEnd, kv...) }
}

// streamMisdeeds break a rule of one stream.
func streamMisdeeds() []misdeed {
	const protocol, flow = http2.ErrCodeProtocol, http2.ErrCodeFlowControl
	deeds := []misdeed{
		{"8.1 DATA before HEADERS", asked, func(w *testkit.Peer) { w.WriteData(1, end, hi()) }, protocol},
		{"8.1 only an interim answer", asked, func(w *testkit.Peer) { w.WriteHeaders(1, end, ":status", "103") }, protocol},
		{"8.3.2 no :status", asked, fields("content-type", "application/grpc"), protocol},
		{"8.3.2 two of :status", asked, fields(":status", "200", ":status", "200"), protocol},
		{"8.3.2 :status of two digits", asked, fields(":status", "20"), protocol},
		{"8.3 :status at the end", asked, fields("x", "y", ":status", "200"), protocol},
		{"8.3 a field of requests", asked, fields(":status", "200", ":path", "/"), protocol},
		{"8.2.1 upper case", asked, fields(":status", "200", "X-Upper", "1"), protocol},
		{"8.2.1 line feed", asked, fields(":status", "200", "x", "a\nb"), protocol},
		{"8.2.2 connection", asked, fields(":status", "200", "connection", "close"), protocol},
		{"6.9 WINDOW_UPDATE of zero", asked, func(w *testkit.Peer) { w.WriteWindowUpdate(1, 0) }, protocol},
		{"6.9.1 window overflow", asked, func(w *testkit.Peer) { w.WriteWindowUpdate(1, 1<<31-1) }, flow},
		{"6.3 PRIORITY of 4 octets", asked, func(w *testkit.Peer) { w.WriteFrame(http2.FramePriority, 0, 1, make([]byte, 4)) }, http2.ErrCodeFrameSize},
	}
	for _, at := range []stage{begun, flowing} {
		deeds = append(deeds,
			misdeed{"8.1 trailers without END_STREAM", at, func(w *testkit.Peer) { w.WriteHeaders(1, noEnd, "grpc-status", "0") }, protocol},
			misdeed{"8.1 HEADERS twice", at, fields(responseHead()...), protocol},
			misdeed{"8.1 :status in trailers", at, func(w *testkit.Peer) { w.WriteHeaders(1, end, ":status", "200", "grpc-status", "0") }, protocol},
			misdeed{"6.9 WINDOW_UPDATE of zero", at, func(w *testkit.Peer) { w.WriteWindowUpdate(1, 0) }, protocol},
			misdeed{"6.9.1 window overflow", at, func(w *testkit.Peer) { w.WriteWindowUpdate(1, 1<<31-1) }, flow},
		)
	}
	return deeds
}

// RFC 9113 5.4.2, R13, R14: a worker that breaks a rule of one stream costs the
// caller of that stream its call, and nobody anything else.
func TestStreamMisdeeds(t *testing.T) {
	for _, d := range streamMisdeeds() {
		t.Run(fmt.Sprintf("%s, %v", d.name, d.at), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u := newUnruly(t, d.at)
				d.do(u.worker)
				u.worker.WantRST(1, d.code)
				u.wantFailed(1, d.at, "14", badResponse)
				reply(u.worker, 3)
				wantReply(u.caller, 3)
				u.worker.WantIdle()
				u.wantCalm()
				if n := u.counted("bad_response"); n != 1 {
					t.Errorf("bad_response counted %d times", n)
				}
			})
		})
	}
}

// block80 is a header block that cannot be decoded (RFC 7541, 6.1: index 0).
func block80(w *testkit.Peer) { w.WriteHeadersFragment(1, end, true, []byte{0x80}) }

// connMisdeeds break a rule of the whole connection.
func connMisdeeds() []misdeed {
	const protocol, flow, size = http2.ErrCodeProtocol, http2.ErrCodeFlowControl, http2.ErrCodeFrameSize
	frame := func(kind http2.FrameType, flags http2.Flags, stream uint32, payload ...byte) func(*testkit.Peer) {
		return func(w *testkit.Peer) { w.WriteFrame(kind, flags, stream, payload) }
	}
	setting := func(id http2.SettingID, value uint32) func(*testkit.Peer) {
		return func(w *testkit.Peer) { w.WriteSettings(http2.Setting{ID: id, Val: value}) }
	}
	interrupted := func(w *testkit.Peer) {
		w.WriteHeadersFragment(1, noEnd, false, []byte{0x88})
		w.WriteData(1, noEnd, hi())
	}
	answer := func(stream uint32) func(*testkit.Peer) {
		return func(w *testkit.Peer) { w.WriteHeaders(stream, end, responseHead()...) }
	}
	var deeds []misdeed
	for _, at := range []stage{asked, begun, flowing, finished} {
		deeds = append(deeds,
			misdeed{"4.2 a frame of 16,385 octets", at, func(w *testkit.Peer) { w.WriteRaw([]byte{0, 0x40, 1, 0, 0, 0, 0, 0, 1}) }, size},
			misdeed{"4.3 DATA inside a header block", at, interrupted, protocol},
			misdeed{"4.3 header block of nonsense", at, block80, http2.ErrCodeCompression},
			misdeed{"6.9 WINDOW_UPDATE of zero", at, func(w *testkit.Peer) { w.WriteWindowUpdate(0, 0) }, protocol},
			misdeed{"bytes of another protocol", at, func(w *testkit.Peer) { w.WriteRaw([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")) }, size},
		)
	}
	return append(deeds,
		misdeed{"4.3 CONTINUATION of another stream", asked, func(w *testkit.Peer) {
			w.WriteHeadersFragment(1, noEnd, false, []byte{0x88})
			w.WriteContinuation(3, true, nil)
		}, protocol},
		misdeed{"5.1 an answer nobody asked for", asked, answer(99), protocol},
		misdeed{"5.1 a stream of its own", asked, answer(2), protocol},
		misdeed{"5.1 DATA nobody asked for", asked, func(w *testkit.Peer) { w.WriteData(99, end, hi()) }, protocol},
		misdeed{"5.1 RST_STREAM of an idle stream", asked, func(w *testkit.Peer) { w.WriteRST(99, http2.ErrCodeCancel) }, protocol},
		misdeed{"5.1 WINDOW_UPDATE of an idle stream", asked, func(w *testkit.Peer) { w.WriteWindowUpdate(99, 1) }, protocol},
		misdeed{"6.1 DATA of stream 0", asked, func(w *testkit.Peer) { w.WriteData(0, end, hi()) }, protocol},
		misdeed{"6.1 more padding than frame", begun, frame(http2.FrameData, http2.FlagDataPadded, 1, 9, 'x'), protocol},
		misdeed{"6.4 RST_STREAM of 3 octets", asked, frame(http2.FrameRSTStream, 0, 1, 0, 0, 0), size},
		misdeed{"6.5.2 SETTINGS_ENABLE_PUSH", asked, setting(http2.SettingEnablePush, 1), protocol},
		misdeed{"6.5.2 SETTINGS_INITIAL_WINDOW_SIZE of 2^31", asked, setting(http2.SettingInitialWindowSize, 1<<31), flow},
		misdeed{"6.5.2 SETTINGS_MAX_FRAME_SIZE of 16,383", asked, setting(http2.SettingMaxFrameSize, 16383), protocol},
		misdeed{"6.6 PUSH_PROMISE", asked, frame(http2.FramePushPromise, http2.FlagPushPromiseEndHeaders, 1, 0, 0, 0, 2, 0x88), protocol},
		misdeed{"6.8 GOAWAY of a stream", asked, frame(http2.FrameGoAway, 0, 1, make([]byte, 8)...), protocol},
		misdeed{"6.9.1 window overflow", asked, func(w *testkit.Peer) { w.WriteWindowUpdate(0, 1<<31-1) }, flow},
		misdeed{"6.9.2 window overflow by SETTINGS", asked, func(w *testkit.Peer) {
			w.WriteWindowUpdate(1, 1<<31-1-65535)
			w.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 65536})
		}, flow},
		misdeed{"6.10 CONTINUATION alone", asked, func(w *testkit.Peer) { w.WriteContinuation(1, true, nil) }, protocol},
	)
}

// RFC 9113 5.4.1: a worker that breaks a rule of its connection costs the calls
// that it has seen, and nobody else's.
func TestConnectionMisdeeds(t *testing.T) {
	for _, d := range connMisdeeds() {
		t.Run(fmt.Sprintf("%s, %v", d.name, d.at), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u := newUnruly(t, d.at)
				u.worker.Fragile()
				u.worker.Batch(func() { d.do(u.worker) })
				u.worker.Skip(testkit.RST, testkit.SettingsAck) // for its streams, for what came first
				u.worker.WantGoAway(d.code)
				if d.at != finished {
					u.wantFailed(1, d.at, "14", badResponse)
				}
				u.wantFailed(3, asked, "14", badResponse)
				u.wantCalm()
				u.worker.WantClosed()
			})
		})
	}
}

// What the worker has not seen when it breaks its connection moves (R4): here
// it had stopped to read.
func TestUnseenCallsMoveFromBrokenConnection(t *testing.T) {
	for name, last := range map[string]func(*testkit.Peer, net.Conn){
		"header block of nonsense": func(w *testkit.Peer, _ net.Conn) { block80(w) },
		"closed":                   func(_ *testkit.Peer, nc net.Conn) { nc.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newPipeRig(t)
				_, bad, nc := g.foreignConn("unruly", 9)
				caller := g.pipeCaller()
				caller.AnyOrder()
				caller.WriteHeaders(1, end, request(hello)...)
				bad.WantHeaders(1, end)
				bad.Fragile()
				bad.StopReading()
				caller.WriteHeaders(3, end, request(hello)...) // in the transport's hands
				synctest.Wait()
				caller.WriteHeaders(5, end, request(hello)...) // in our buffer
				synctest.Wait()
				_, good := g.foreign("good", 9)
				last(bad, nc)
				good.WantFields(1, end, passedOn(request(hello))...)
				reply(good, 1)
				wantReply(caller, 5)
				message := badResponse
				if name == "closed" {
					message = "cabrank: worker lost"
				}
				wantStatus(caller, 1, "14", message)
				wantStatus(caller, 3, "14", message)
				good.WantIdle()
				g.wantInFlight(0)
			})
		})
	}
}

// RFC 9113 5.1: frames behind the end of an answer change nothing, whether the
// request has ended or not; the connection goes on.
func TestFramesBehindTheEnd(t *testing.T) {
	for name, more := range map[string]func(*testkit.Peer){
		"DATA":          func(w *testkit.Peer) { w.WriteData(1, end, hi()) },
		"HEADERS":       func(w *testkit.Peer) { w.WriteHeaders(1, end, responseHead()...) },
		"trailers":      func(w *testkit.Peer) { w.WriteHeaders(1, end, "grpc-status", "13") },
		"RST_STREAM":    func(w *testkit.Peer) { w.WriteRST(1, http2.ErrCodeNo) },
		"an error":      func(w *testkit.Peer) { w.WriteRST(1, http2.ErrCodeInternal) },
		"WINDOW_UPDATE": func(w *testkit.Peer) { w.WriteWindowUpdate(1, 1<<31-1) },
		"PRIORITY":      func(w *testkit.Peer) { w.WriteFrame(http2.FramePriority, 0, 1, make([]byte, 5)) },
	} {
		for _, whole := range []testkit.EndStream{end, noEnd} {
			t.Run(fmt.Sprintf("%s, request ended %t", name, whole), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					g := newPipeRig(t)
					_, worker := g.foreign("unruly", 1)
					caller := g.pipeCaller()
					caller.WriteHeaders(1, whole, request(hello)...)
					worker.WantHeaders(1, whole)
					worker.Batch(func() { reply(worker, 1); more(worker) })
					wantReply(caller, 1)
					if whole == noEnd { // RFC 9113 8.1: NO_ERROR for the caller
						caller.WantRST(1, http2.ErrCodeNo)
						worker.WantRST(1, http2.ErrCodeCancel)
					}
					more(worker)
					caller.WantIdle()
					worker.WantIdle()
					g.wantInFlight(0)
					caller.WriteHeaders(3, end, request(hello)...)
					worker.WantHeaders(3, end)
					reply(worker, 3)
					wantReply(caller, 3)
				})
			})
		}
	}
}

// A worker that never acknowledges our SETTINGS is served and serves: nothing
// that we announce makes a difference to calls.
func TestSettingsNeverAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t)
		worker := testkit.NewWorker(t, g.pipe(g.AddEndpoint("unruly", 1, false)))
		worker.Skip(testkit.WindowUpdate, testkit.Settings, testkit.SettingsAck)
		worker.WriteSettings()
		caller := g.pipeCaller()
		for n := range uint32(3) {
			caller.WriteHeaders(2*n+1, end, request(hello)...)
			worker.WantHeaders(2*n+1, end)
			reply(worker, 2*n+1)
			wantReply(caller, 2*n+1)
			pass(time.Minute)
		}
	})
}

// A worker that falls silent in the middle of a frame or of a header block: its
// calls end with their deadlines, and those without one when its connection
// does. The bytes that came of a DATA frame are the caller's at once.
func TestHalfFrameThenSilence(t *testing.T) {
	for name, half := range map[string][]byte{
		"half a frame header":  {0, 0, 5, 0},
		"half a DATA frame":    {0, 0, 5, 0, 0, 0, 0, 0, 1, 'x'},
		"half a HEADERS frame": {0, 0, 5, 1, 4, 0, 0, 0, 1, 0x88},
		"half a header block":  {0, 0, 1, 1, 0, 0, 0, 0, 1, 0x88},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				u := newUnruly(t, flowing, "grpc-timeout", "7S")
				u.worker.WriteRaw(half)
				if name == "half a DATA frame" {
					u.caller.WantDataBytes(1, []byte("x"), noEnd)
				}
				u.caller.WantIdle()
				pass(6 * time.Second)
				u.wantFailed(3, asked, "4", "cabrank: deadline exceeded")
				wantTook(t, began, 7*time.Second)
				u.worker.WantRST(3, http2.ErrCodeCancel)
				u.wantRunning(u.endpoint, 1)
				u.worker.Close()
				u.wantFailed(1, flowing, "14", "cabrank: worker lost")
				u.wantCalm()
			})
		})
	}
}

// wantRunning says how many leases an endpoint has.
func (g *rig) wantRunning(e *Endpoint, n int) {
	g.t.Helper()
	synctest.Wait()
	if got := g.Activity(e).InFlight; got != n {
		g.t.Errorf("%s has %d calls, want %d", e.name, got, n)
	}
}

// A header block that never ends is bounded by the limit of header lists: the
// worker loses its connection (RFC 9113 10.5.1), its calls get an answer.
func TestWorkerFloodsContinuation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUnruly(t, asked)
		u.worker.Fragile()
		u.worker.WriteHeadersFragment(1, noEnd, false, []byte{0x88})
		part := []byte(strings.Repeat("\x00\x01x\x01y", 1000))
		for range 20 {
			u.worker.WriteContinuation(1, false, part)
		}
		u.worker.Skip(testkit.RST)
		u.worker.WantGoAway(http2.ErrCodeEnhanceYourCalm)
		u.wantFailed(1, asked, "14", badResponse)
		u.wantFailed(3, asked, "14", badResponse)
		u.wantCalm()
	})
}
