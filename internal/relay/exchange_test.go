package relay

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/testkit"
)

// site serves every path that begins with "/site" by one function.
func site(serve func(*Exchange)) func(*Options) {
	return func(o *Options) {
		o.Other = func(head Head) func(*Exchange) {
			if bytes.HasPrefix(head.Path, []byte("/site")) {
				return serve
			}
			return nil
		}
	}
}

// answer writes a whole answer.
func (x *Exchange) answer(body string) {
	if x.WriteHead(h2.AppendField(nil, ":status", "200"), false) == nil {
		_, _ = x.Write([]byte(body), true)
	}
}

// echoExchange answers with what it reads, as it comes.
func echoExchange(x *Exchange) {
	_ = x.WriteHead(h2.AppendField(nil, ":status", "200"), false)
	p := make([]byte, 32<<10)
	for {
		n, err := x.Read(p)
		if n > 0 {
			_, err = x.Write(p[:n], false)
		}
		if err != nil {
			break
		}
	}
	_, _ = x.Write(nil, true)
}

// sites are handlers by what they do.
func sites() map[string]func(*Exchange) {
	head := func(x *Exchange, kv ...string) { _ = x.WriteHead(block(kv...), kv[0] != ":status") }
	return map[string]func(*Exchange){
		"echo":    echoExchange,
		"here":    func(x *Exchange) { _, _ = io.Copy(io.Discard, x); x.answer("here") },
		"answers": func(x *Exchange) { x.answer("0123456789") },
		"returns": func(*Exchange) {},
		"resets":  func(x *Exchange) { x.Reset(h2.EnhanceYourCalm) },
		"begins":  func(x *Exchange) { head(x, ":status", "200") },
		"tells": func(x *Exchange) { // body, fields of the head and of the trailers
			x.WriteInterim(block(":status", "100"))
			body, _ := io.ReadAll(x)
			fields := x.Head()
			trailers := x.Trailers()
			head(x, ":status", "200")
			x.WriteInterim(block(":status", "103")) // too late
			_, _ = x.Write(fmt.Append(nil, string(body), fieldsBehind(fields), fieldsBehind(trailers)), false)
			head(x, "x-sum", "3")
		},
	}
}

// R11: what is not read gives no credit, and a caller can have a window of it here.
func TestExchangeReadsAsItLikes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		read := make(chan int)
		g := newPipeRig(t, site(func(x *Exchange) {
			for n := range read {
				if _, err := io.ReadFull(x, make([]byte, n)); err != nil {
					t.Errorf("read: %v", err)
				}
			}
			x.answer("read")
		}))
		caller := g.pipeCaller()
		caller.WriteHeaders(1, noEnd, plain("POST", "/site")...)
		for range 4 {
			caller.WriteData(1, noEnd, make([]byte, 16<<10))
		}
		synctest.Wait()
		if credit := caller.Credit(1); credit != 0 {
			t.Errorf("the caller may send %d bytes more than a window", credit)
		}
		if used := g.budget.Used(); used < streamWindow || used > 3*streamWindow {
			t.Errorf("%d bytes are counted for a window of %d", used, streamWindow)
		}
		read <- streamWindow / 2
		synctest.Wait()
		if credit := caller.Credit(1); credit < streamWindow/2 {
			t.Errorf("after half a window was read the caller may send %d bytes", credit)
		}
		caller.WriteHeaders(1, end, "x-last", "1")
		read <- streamWindow / 2
		close(read)
		caller.WantFields(1, noEnd, ":status", "200")
		caller.WantDataBytes(1, []byte("read"), end)
	})
}

// Whoever reads, writes or works when the caller leaves, is told. That it goes on
// holds up a drain, and counts for its caller, until it returns.
func TestCallerLeavesExchange(t *testing.T) {
	for name, leave := range map[string]func(*testkit.Peer){
		"reset":      func(p *testkit.Peer) { p.WriteRST(1, http2.ErrCodeCancel) },
		"connection": func(p *testkit.Peer) { p.Close() },
		"broken rule": func(p *testkit.Peer) {
			p.WriteData(1, noEnd, []byte("abc")) // more than content-length
			p.WantRST(1, http2.ErrCodeProtocol)
		},
		"broken connection": func(p *testkit.Peer) {
			p.WriteHeaders(2, end, plain("GET", "/site")...)
			p.WantGoAway(http2.ErrCodeProtocol)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				told, over := make(chan error, 3), make(chan struct{})
				g := newPipeRig(t, site(func(x *Exchange) {
					go func() { _, err := x.Read(make([]byte, 1)); told <- err }()
					_ = x.WriteHead(h2.AppendField(nil, ":status", "200"), false)
					go func() { _, err := x.Write(make([]byte, 1<<20), false); told <- err }()
					<-x.Context().Done()
					told <- x.WriteHead(h2.AppendField(nil, "late", "1"), true)
					<-over
				}))
				caller := g.pipeCaller()
				caller.WriteSettings(noWindow())
				caller.WantSettingsAck()
				caller.WriteHeaders(1, noEnd, plain("POST", "/site", "content-length", "2")...)
				caller.WantHeaders(1, noEnd)
				leave(caller)
				for range 3 {
					if err := <-told; !errors.Is(err, ErrGone) {
						t.Errorf("got %v, want ErrGone", err)
					}
				}
				if used := g.budget.Used(); g.running() != 1 || used < exchangeSize {
					t.Errorf("it runs: %d hold up a drain, %d bytes are counted", g.running(), used)
				}
				close(over)
				synctest.Wait()
				if used := g.budget.Used(); g.running() != 0 || used > exchangeSize/2 {
					t.Errorf("it is over: %d hold up a drain, %d bytes are counted", g.running(), used)
				}
				caller.Close()
			})
		})
	}
}

// R17: a drain waits for exchanges as for calls. One that is left gets a second, in
// which what it waits for is answered, and is ended then.
func TestDrainWaitsForExchanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		go1, stop := make(chan struct{}), make(chan struct{})
		g := newPipeRig(t, func(o *Options) {
			o.Other = func(head Head) func(*Exchange) {
				switch string(head.Path) {
				case "/ends":
					return func(x *Exchange) { <-go1; x.answer("done") }
				case "/began":
					return func(x *Exchange) {
						_ = x.WriteHead(h2.AppendField(nil, ":status", "200"), false)
						<-stop
					}
				default:
					return func(*Exchange) { <-stop }
				}
			}
		})
		caller := g.pipeCaller()
		caller.AnyOrder()
		for i, path := range []string{"/ends", "/began", "/silent"} {
			caller.WriteHeaders(uint32(2*i+1), end, plain("GET", path)...)
		}
		caller.WantFields(3, noEnd, ":status", "200")
		began := time.Now()
		wait := g.drain(3*time.Second, nil)
		caller.WantGoAway(http2.ErrCodeNo)
		caller.WritePingAck(caller.WantPing())
		caller.WantGoAway(http2.ErrCodeNo)
		caller.WantIdle()
		close(go1)
		caller.WantFields(1, noEnd, ":status", "200")
		caller.WantDataBytes(1, []byte("done"), end)
		caller.WantRST(3, http2.ErrCodeInternal)
		caller.WantHeaders(5, noEnd)
		caller.WantDataBytes(5, []byte("cabrank: shutting down\n"), end)
		wantTook(t, began, 4*time.Second)
		caller.WantClosed()
		wait()
		if n := g.counted("shutting_down"); n != 2 {
			t.Errorf("%d were counted as cut, want 2", n)
		}
		close(stop)
	})
}

// A caller that holds a share of a full budget starts no more exchanges, nor does one
// that has as many as its connection may hold.
func TestExchangesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stop := make(chan struct{})
		g := newPipeRig(t, site(func(*Exchange) { <-stop }), func(o *Options) { o.Limits.Buffer = 10 * exchangeSize })
		caller := g.pipeCaller()
		caller.Skip(testkit.RST)
		stream, served := uint32(1), 0
		for ; served < 100; served++ {
			caller.WriteHeaders(stream, end, plain("GET", "/site")...)
			synctest.Wait()
			if g.counted("buffer_full") > 0 {
				break
			}
			caller.WriteRST(stream, http2.ErrCodeCancel) // it runs on
			stream += 2
		}
		if served < 8 || served > 11 {
			t.Errorf("%d were served in the room of 10", served)
		}
		if status := testkit.Value(caller.WantHeaders(stream, noEnd), ":status"); status != "503" {
			t.Errorf("status %s", status)
		}
		caller.WantDataBytes(stream, []byte("cabrank: queue full\n"), end)
		close(stop)
		synctest.Wait()
	})
}

// While memory is short, exchanges with callers that do nothing are given up;
// one that works is not.
func TestStalledExchanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stop := make(chan struct{})
		g := newPipeRig(t, func(o *Options) {
			o.BufferTotal, o.StallTimeout = 100<<10, time.Minute
			o.Other = func(head Head) func(*Exchange) {
				switch string(head.Path) {
				case "/reads":
					return echoExchange
				case "/writes":
					return func(x *Exchange) { x.answer("0123456789") }
				default:
					return func(x *Exchange) { <-stop; x.answer("done") }
				}
			}
		})
		caller := g.pipeCaller()
		caller.AnyOrder()
		caller.WriteSettings(noWindow())
		caller.WantSettingsAck()
		for i, path := range []string{"/reads", "/writes", "/works"} {
			caller.WriteHeaders(uint32(2*i+1), noEnd, plain("POST", path)...)
		}
		caller.WantHeaders(1, noEnd)
		caller.WantHeaders(3, noEnd)
		pass(2 * time.Minute)
		if n := g.counted("caller_stalled"); n != 0 {
			t.Errorf("%d were given up with room for others", n)
		}
		g.budget.Add(50 << 10)
		began := time.Now()
		testkit.Eventually(t, 2*time.Minute, "the end of two", func() bool { return g.counted("caller_stalled") == 2 })
		caller.WantRST(1, http2.ErrCodeInternal)
		caller.WantRST(3, http2.ErrCodeInternal)
		if took := time.Since(began); took < 50*time.Second || took > 80*time.Second {
			t.Errorf("they were given up after %v", took)
		}
		g.budget.Add(-50 << 10)
		caller.WriteWindowUpdate(5, 100)
		close(stop)
		caller.WantHeaders(5, noEnd)
		caller.WantDataBytes(5, []byte("done"), end)
	})
}
