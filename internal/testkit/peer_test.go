package testkit

import (
	"bytes"
	"fmt"
	"net"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"golang.org/x/net/http2"
)

func TestMain(m *testing.M) { VerifyMain(m) }

// pair greets a caller and a worker with each other over net.Pipe.
func pair(t *testing.T, settings ...http2.Setting) (caller, worker *Peer) {
	t.Helper()
	a, b := net.Pipe()
	caller, worker = NewCaller(t, a), NewWorker(t, b)
	done := make(chan struct{})
	go func() {
		defer close(done)
		worker.Greet(settings...)
	}()
	got := caller.Greet()
	<-done
	for _, s := range settings {
		Want(t, got[s.ID] == s.Val, "%v: got %d, want %d", s.ID, got[s.ID], s.Val)
	}
	return caller, worker
}

// disappointed runs script against a Peer whose failures are caught, and
// returns the message of the failure.
func disappointed(t *testing.T, p *Peer, script func()) string {
	t.Helper()
	catch := &catchTB{TB: t}
	p.t = catch
	done := make(chan struct{})
	go func() { // ends by Goexit in Fatalf or at the end of script
		defer close(done)
		script()
	}()
	<-done
	p.t = t
	Want(t, catch.message != "", "the verb was content")
	return catch.message
}

type catchTB struct {
	testing.TB
	message string
}

func (c *catchTB) Helper() {}

func (c *catchTB) Fatalf(format string, args ...any) {
	c.message = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// Every verb that writes is understood by the verb that wants the frame, in
// both directions, and nothing else arrives.
func TestVerbsMeet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		caller, worker := pair(t, http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 250})
		request := []string{":method", "POST", ":path", "/a.B/C", "te", "trailers", "te", "trailers"}
		caller.WriteHeaders(1, NoEnd, request...)
		worker.WantFields(1, NoEnd, request...)
		caller.WriteFields(3, End, []Field{{Name: "authorization", Value: "secret", Never: true}})
		if got := worker.WantHeaders(3, End); !got[0].Never || Value(got, "authorization") != "secret" {
			t.Errorf("never-indexed field: got %v", got)
		}
		caller.WriteData(1, NoEnd, []byte("ab"))
		caller.WritePadded(1, End, []byte("cd"), 7)
		worker.WantDataBytes(1, []byte("abcd"), End)
		caller.WriteData(3, NoEnd, []byte("xyz"))
		if got := worker.WantData(3, NoEnd); string(got) != "xyz" {
			t.Errorf("DATA: got %q", got)
		}
		worker.WriteWindowUpdate(3, 10)
		if got := caller.WantFrame(); got.Kind != WindowUpdate || got.Stream != 3 || got.Incr != 10 {
			t.Errorf("WINDOW_UPDATE: got %v", got)
		}
		worker.WriteRST(3, http2.ErrCodeCancel)
		caller.WantRST(3, http2.ErrCodeCancel)
		caller.WritePing([8]byte{1})
		worker.WritePingAck(worker.WantPing())
		caller.WantPingAck([8]byte{1})
		worker.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1})
		if got := caller.WantSettings(); got[http2.SettingInitialWindowSize] != 1 {
			t.Errorf("SETTINGS: got %v", got)
		}
		caller.WriteSettingsAck()
		worker.WantSettingsAck()
		caller.WriteFrame(0xfa, 1, 9, []byte("?"))
		if got := worker.WantFrame(); got.Kind != Other || got.Type != 0xfa || string(got.Payload) != "?" {
			t.Errorf("unknown frame: got %v", got)
		}
		worker.WriteGoAway(7, http2.ErrCodeEnhanceYourCalm, "calm")
		Equal(t, caller.WantGoAway(http2.ErrCodeEnhanceYourCalm), 7, "GOAWAY: the last stream")
		caller.WantIdle()
		worker.WantIdle()
		worker.Close()
		caller.WantClosed()
		caller.WantClosed()
	})
}

// A header block that is cut anywhere arrives whole.
func TestHeaderBlockInPieces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		caller, worker := pair(t)
		caller.Dribble(1)
		list := []string{":method", "POST", "x-long", strings.Repeat("v", 300)}
		for _, size := range []int{1, 7, 1000} {
			stream := uint32(2*size + 1)
			caller.WriteBlock(stream, End, caller.Encode(list...), size)
			worker.WantFields(stream, End, list...)
		}
		caller.Dribble(0)
		block := caller.Encode(list...)
		caller.WriteHeadersFragment(9, End, false, block[:2])
		worker.WantIdle()
		caller.WriteContinuation(9, true, block[2:])
		got := worker.WantBlock(9, End).Block
		Want(t, bytes.Equal(got, block), "block: got %x, want %x", got, block)
	})
}

// A large body waits for credit, stream and connection, and goes on with it.
func TestBodyKeepsToTheWindows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		caller, worker := pair(t, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 20000})
		worker.Refill()
		caller.Skip(WindowUpdate)
		body := bytes.Repeat([]byte("0123456789"), 30000)
		done := make(chan struct{})
		go func() {
			defer close(done)
			caller.WriteBody(1, End, body)
		}()
		synctest.Wait()
		if got := caller.sent[1]; got != 20000 {
			t.Errorf("sent %d bytes without credit, want 20000", got)
		}
		worker.WantDataBytes(1, body, End)
		<-done
		caller.WantCredit(0, int64(len(body)))
		caller.WantIdle()
	})
}

// What a verb did not expect is named, together with what came before.
func TestDisappointmentTells(t *testing.T) {
	cases := map[string]struct {
		send func(caller *Peer)
		want func(worker *Peer)
		says string
	}{
		"other kind":     {func(p *Peer) { p.WriteRST(1, http2.ErrCodeCancel) }, func(p *Peer) { p.WantHeaders(1, End) }, "want HEADERS stream=1, got RST_STREAM stream=1 CANCEL"},
		"other stream":   {func(p *Peer) { p.WriteData(3, End, nil) }, func(p *Peer) { p.WantData(1, End) }, "got DATA stream=3 END_STREAM"},
		"other end":      {func(p *Peer) { p.WriteHeaders(1, NoEnd, "a", "b") }, func(p *Peer) { p.WantHeaders(1, End) }, "want END_STREAM true"},
		"other list":     {func(p *Peer) { p.WriteHeaders(1, End, "a", "b") }, func(p *Peer) { p.WantFields(1, End, "a", "c") }, `a: "b"`},
		"other bytes":    {func(p *Peer) { p.WriteData(1, End, []byte("abc")) }, func(p *Peer) { p.WantDataBytes(1, []byte("abd"), End) }, `"abc" are not the beginning`},
		"early end":      {func(p *Peer) { p.WriteData(1, End, []byte("ab")) }, func(p *Peer) { p.WantDataBytes(1, []byte("abd"), End) }, "got 2, true"},
		"nothing":        {func(*Peer) {}, func(p *Peer) { p.WantGoAway(0) }, "got nothing in 30s"},
		"noise":          {func(p *Peer) { p.WritePing([8]byte{}) }, func(p *Peer) { p.WantIdle() }, "want silence, got PING"},
		"closed":         {func(p *Peer) { p.Close() }, func(p *Peer) { p.WantRST(1, 0) }, "got end of connection (EOF)"},
		"broken frame":   {func(p *Peer) { p.WriteFrame(http2.FramePing, 0, 0, []byte("short")) }, func(p *Peer) { p.WantClosed() }, "FRAME_SIZE_ERROR"},
		"broken block":   {func(p *Peer) { p.WriteBlock(1, End, []byte{0xff, 0xff, 0xff, 0xff, 0x0f}, 100) }, func(p *Peer) { p.WantHeaders(1, End) }, "header block ffffffff0f of stream 1"},
		"split by other": {func(p *Peer) { p.WriteHeadersFragment(1, End, false, nil); p.WritePing([8]byte{}) }, func(p *Peer) { p.WantHeaders(1, End) }, "inside the header block of stream 1"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				caller, worker := pair(t)
				c.send(caller)
				got := disappointed(t, worker, func() { c.want(worker) })
				Want(t, strings.Contains(got, c.says) && strings.Contains(got, "<- SETTINGS"),
					"the message\n%s\nlacks %q or the transcript", got, c.says)
			})
		})
	}
}

// Skipped kinds do not disturb, and the verb that wants one still finds it.
func TestSkip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		caller, worker := pair(t)
		caller.Skip(WindowUpdate, PingAck)
		worker.WriteWindowUpdate(0, 5)
		worker.WriteRST(1, http2.ErrCodeNo)
		worker.WritePingAck([8]byte{9})
		caller.WantRST(1, http2.ErrCodeNo)
		caller.WantPingAck([8]byte{9})
		worker.WriteWindowUpdate(1, 6)
		caller.WantIdle()
		if caller.Credit(0) != 5 || caller.Credit(1) != 6 {
			t.Errorf("credit: got %d and %d, want 5 and 6", caller.Credit(0), caller.Credit(1))
		}
	})
}

// With AnyOrder streams may overtake each other, frames of one may not.
func TestAnyOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		caller, worker := pair(t)
		caller.AnyOrder()
		worker.WriteData(3, NoEnd, []byte("three"))
		worker.WriteData(1, NoEnd, []byte("one"))
		worker.WriteRST(3, http2.ErrCodeCancel)
		caller.WantData(1, NoEnd)
		got := disappointed(t, caller, func() { caller.WantRST(3, http2.ErrCodeCancel) })
		Says(t, got, `got DATA stream=3 5 bytes "three"`)
	})
}

// A peer that stops reading exerts backpressure; what was sent waits for it.
func TestStopReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		caller, worker := pair(t)
		worker.StopReading()
		done := make(chan struct{})
		go func() {
			defer close(done)
			caller.WriteData(1, End, []byte("late"))
		}()
		worker.WantIdle()
		worker.ReadAgain()
		worker.WantDataBytes(1, []byte("late"), End)
		<-done
	})
}

// Outside of a bubble, over TCP: the PING round trip, half-close, and writes
// into a connection that the other side has closed.
func TestOverTCP(t *testing.T) {
	CheckLeaks(t)
	addr, accept := ListenWorker(t)
	caller := DialCaller(t, addr)
	worker := accept()
	done := make(chan struct{})
	go func() {
		defer close(done)
		worker.Greet()
		worker.WritePingAck(worker.WantPing())
		worker.WritePingAck(worker.WantPing())
	}()
	caller.Greet()
	caller.WantIdle()
	<-done
	worker.Batch(func() {
		worker.WriteHeaders(1, NoEnd, ":status", "200")
		worker.WriteHeaders(1, End, "grpc-status", "0")
	})
	worker.CloseWrite()
	caller.WantFields(1, NoEnd, ":status", "200")
	caller.WantFields(1, End, "grpc-status", "0")
	caller.WantClosed()
	worker.Close()
	caller.Fragile()
	for range 100 {
		caller.WritePing([8]byte{})
	}
}

// A client that does not speak HTTP/2 is told apart from one that does.
func TestBadPreface(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		caller, worker := NewCaller(t, a), NewWorker(t, b)
		caller.WriteRaw([]byte("GET / HTTP/1.1\r\nhost: a\r\n\r\n"))
		got := disappointed(t, worker, func() { worker.WantClosed() })
		Says(t, got, errBadPreface.Error())
	})
}

// A goroutine that stays is found, with its stack; one that ends is not.
func TestLeakIsFound(t *testing.T) {
	before := goroutines(ours)
	release := make(chan struct{})
	go func() { <-release }()
	for id, stack := range goroutines(ours) {
		Want(t, before[id] != "" || strings.Contains(stack, "TestLeakIsFound"), "an innocent goroutine was found:\n%s", stack)
	}
	Want(t, len(goroutines(ours)) != len(before), "the goroutine was not found")
	close(release)
	awaitNone(t, before)
}
