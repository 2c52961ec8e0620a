package relay

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
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

// Calls and exchanges go beside each other on one connection.
func TestExchangeBesideCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t, site(echoExchange))
		_, worker := g.pipeWorker("w1", 1)
		caller := g.pipeCaller()
		caller.WriteHeaders(1, end, request(hello)...)
		worker.WantHeaders(1, end)
		caller.WriteHeaders(3, noEnd, plain("POST", "/site/echo")...)
		caller.WantFields(3, noEnd, ":status", "200")
		caller.WriteData(3, noEnd, []byte("one"))
		caller.WantDataBytes(3, []byte("one"), noEnd)
		reply(worker, 1)
		wantReply(caller, 1)
		caller.WriteData(3, end, []byte("two"))
		caller.WantDataBytes(3, []byte("two"), noEnd)
		caller.WantDataBytes(3, nil, end)
		caller.WriteHeaders(5, end, request(hello)...)
		worker.WantHeaders(3, end)
		reply(worker, 3)
		wantReply(caller, 5)
	})
}

// What the one that serves others asks by itself goes to a worker: it does not come
// back to it.
func TestOwnRequestsAreCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t, site(func(x *Exchange) { x.answer("here") }))
		_, worker := g.pipeWorker("w1", 1)
		var c LocalCall
		list := plain("GET", "/site")
		open(t, g.local(Caller{Door: "web"}), &c, LocalRequest{Head: headOf(list...), End: true})
		worker.WantFields(1, end, passedOn(list)...)
		reply(worker, 1)
		wantAnswer(t, &c)
		c.Close()
	})
}

// What is a call goes to a worker, whatever its path: a POST of gRPC. So does what
// nobody takes. CONNECT is answered as ever.
func TestWhoServes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t, site(func(x *Exchange) { x.answer("here") }))
		_, worker := g.pipeWorker("w1", 4)
		caller := g.pipeCaller()
		for i, list := range [][]string{
			request("/site"), request("/site"), // the second one is of the form of the first
			plain("GET", "/elsewhere"),
		} {
			stream := uint32(2*i + 1)
			caller.WriteHeaders(stream, end, list...)
			worker.WantFields(stream, end, passedOn(list)...)
			reply(worker, stream)
			wantReply(caller, stream)
		}
		web := request("/site")
		web[slices.Index(web, "application/grpc")] = "application/grpc-web+proto"
		get := request("/site")
		get[slices.Index(get, "POST")] = "GET"
		for i, list := range [][]string{plain("GET", "/site"), web, get} {
			stream := uint32(2*i + 7)
			caller.WriteHeaders(stream, end, list...)
			caller.WantFields(stream, noEnd, ":status", "200")
			caller.WantDataBytes(stream, []byte("here"), end)
		}
		caller.WriteHeaders(13, noEnd, ":method", "CONNECT", ":authority", "site")
		caller.WantHeaders(13, noEnd)
		caller.WantDataBytes(13, []byte("cabrank: CONNECT is not served\n"), end)
		caller.WantRST(13, http2.ErrCodeNo)
	})
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

// A writer waits for its caller's window, and nobody else does.
func TestExchangeWaitsForItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t, site(func(x *Exchange) { x.answer("0123456789") }))
		_, worker := g.pipeWorker("w1", 1)
		caller := g.pipeCaller()
		caller.WriteSettings(noWindow())
		caller.WantSettingsAck()
		caller.WriteHeaders(1, end, plain("GET", "/site")...)
		caller.WantFields(1, noEnd, ":status", "200")
		caller.WantIdle()
		caller.WriteWindowUpdate(1, 4)
		caller.WantDataBytes(1, []byte("0123"), noEnd)
		caller.WriteHeaders(3, end, request(hello)...)
		worker.WantHeaders(1, end)
		worker.WriteHeaders(1, end, append(responseHead(), "grpc-status", "0")...)
		caller.WantHeaders(3, end)
		caller.WriteWindowUpdate(1, 100)
		caller.WantDataBytes(1, []byte("456789"), end)
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

// An exchange that returns before its caller has sent everything, or has not
// answered, is ended.
func TestExchangeReturnsEarly(t *testing.T) {
	for name, c := range map[string]struct {
		serve func(*Exchange)
		code  http2.ErrCode
	}{
		"answered":   {func(x *Exchange) { x.answer("no more") }, http2.ErrCodeNo},
		"unanswered": {func(*Exchange) {}, http2.ErrCodeInternal},
		"reset":      {func(x *Exchange) { x.Reset(h2.EnhanceYourCalm) }, http2.ErrCodeEnhanceYourCalm},
		"half": {func(x *Exchange) {
			_ = x.WriteHead(h2.AppendField(nil, ":status", "200"), false)
		}, http2.ErrCodeInternal},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newPipeRig(t, site(c.serve))
				caller := g.pipeCaller()
				caller.Skip(testkit.Headers, testkit.Data)
				caller.WriteHeaders(1, noEnd, plain("POST", "/site")...)
				caller.WantRST(1, c.code)
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

// A head above the limit is answered, and so are trailers; the next stream is served.
func TestExchangeHeadTooLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t, site(func(x *Exchange) {
			_, _ = io.Copy(io.Discard, x)
			x.answer("here")
		}))
		caller := g.pipeCaller()
		large := []string{"x-large", strings.Repeat("~", 20<<10)}
		for _, stream := range []uint32{1, 3} {
			if stream == 1 {
				caller.WriteHeaders(stream, end, plain("GET", "/site", large...)...)
			} else {
				caller.WriteHeaders(stream, noEnd, plain("POST", "/site")...)
				caller.WriteHeaders(stream, end, large...)
			}
			if status := testkit.Value(caller.WantHeaders(stream, noEnd), ":status"); status != "431" {
				t.Errorf("stream %d: status %s", stream, status)
			}
			caller.WantDataBytes(stream, []byte("cabrank: headers too large\n"), end)
		}
		caller.WriteHeaders(5, end, plain("HEAD", "/site", large...)...)
		caller.WantHeaders(5, end)
		caller.WriteHeaders(7, end, plain("GET", "/site")...)
		caller.WantFields(7, noEnd, ":status", "200")
		caller.WantDataBytes(7, []byte("here"), end)
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

// While room for others gets short, exchanges whose callers do nothing are given up;
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

// Trailers of the request are there behind its end, interim answers before the final
// one.
func TestExchangeTrailers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t, site(func(x *Exchange) {
			x.WriteInterim(h2.AppendField(nil, ":status", "100"))
			body, err := io.ReadAll(x)
			fields := x.Trailers()
			if string(body) != "abc" || err != nil || len(fields) != 1 || fields[0].Name != "x-last" {
				t.Errorf("body %q, %v, trailers %v", body, err, fields)
			}
			_ = x.WriteHead(h2.AppendField(nil, ":status", "200"), false)
			x.WriteInterim(h2.AppendField(nil, ":status", "103"))
			_ = x.WriteHead(h2.AppendField(nil, "x-sum", "3"), true)
		}))
		caller := g.pipeCaller()
		caller.WriteHeaders(1, noEnd, plain("POST", "/site")...)
		caller.WantFields(1, noEnd, ":status", "100")
		caller.WriteData(1, noEnd, []byte("abc"))
		caller.WriteHeaders(1, end, "x-last", "1")
		caller.WantFields(1, noEnd, ":status", "200")
		caller.WantFields(1, end, "x-sum", "3")
	})
}
