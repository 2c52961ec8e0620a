package main

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/cabrank/cabrank/bench/rawh2"
)

// answerer is a backend whose answers can be wrong in one way.
type answerer struct {
	conn  *rawh2.Conn
	wrong string
	calls int
}

func (a *answerer) BatchRead() error { return nil }

func (a *answerer) Frame(f rawh2.Frame) error {
	if f.Type != rawh2.TypeData {
		return nil
	}
	a.calls++
	wrong := a.wrong
	if a.calls < 3 {
		wrong = "" // the first calls go well, whatever comes
	}
	status, code := "200", "0"
	message := f.Payload
	switch wrong {
	case "status":
		status = "503"
	case "code":
		code = "8"
	case "bytes":
		message[len(message)-1]++
	case "short":
		message = message[:len(message)-1]
	case "close":
		return net.ErrClosed
	}
	head, _ := rawh2.Blocks(0, ":status", status, "content-type", "application/grpc")
	trailers, _ := rawh2.Blocks(0, "grpc-status", code)
	if wrong != "head" {
		a.conn.Headers(f.Stream, head, false)
	}
	for range rawh2.Answers(f.Payload) {
		half := len(message) / 2
		if err := a.conn.Send(f.Stream, message[:half], false, nil); err != nil {
			return err
		}
		if err := a.conn.Send(f.Stream, message[half:], wrong == "end", nil); err != nil {
			return err
		}
	}
	a.conn.Headers(f.Stream, trailers, true)
	return nil
}

// server answers every connection until the test ends.
func server(t *testing.T, wrong string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				conn := rawh2.NewConn(c, false)
				conn.Serve(&answerer{conn: conn, wrong: wrong})
			}()
		}
	}()
	return l.Addr().String()
}

// A run over right answers, cut in two frames each, counts all calls and has
// none that failed.
func TestRunCounts(t *testing.T) {
	p := plan{addr: server(t, ""), conns: 2, streams: 3, size: 20, answers: 4, burst: 2, indexed: true, timeout: "5S", warmup: time.Millisecond, duration: 30 * time.Millisecond}
	r, err := run(p)
	if err != nil {
		t.Fatal(err)
	}
	if r.Failed != 0 || r.Calls == 0 || r.P50 <= 0 || r.P99 < r.P50 || r.Max < r.P99 || r.CPU != 0 {
		t.Errorf("got %+v", r)
	}
}

// Whatever is wrong with an answer makes its call a failed one.
func TestRunFindsWrongAnswers(t *testing.T) {
	says := map[string]string{
		"status": "not 200", "head": "not 200", "code": "no grpc-status 0", "bytes": "wrong bytes",
		"short": "wrong bytes", "close": "calls in flight", "end": "without trailers",
	}
	for wrong, say := range says {
		t.Run(wrong, func(t *testing.T) {
			p := plan{addr: server(t, wrong), conns: 1, streams: 2, size: 16, answers: 2, duration: 20 * time.Millisecond}
			r, err := run(p)
			if err != nil {
				t.Fatal(err)
			}
			if r.Failed == 0 || !strings.Contains(r.Failure, say) {
				t.Errorf("%d failed, the first: %q; want %q", r.Failed, r.Failure, say)
			}
		})
	}
}

func TestRunWithoutServer(t *testing.T) {
	if _, err := run(plan{addr: "127.0.0.1:1", conns: 1, streams: 1, size: 16, answers: 1}); err == nil {
		t.Error("nobody listens, and no error came")
	}
}

func TestPlanCheck(t *testing.T) {
	good := plan{conns: 1, streams: 1, size: 16, answers: 1, duration: 1}
	if err := good.check(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*plan){
		"size":     func(p *plan) { p.size = 15 },
		"large":    func(p *plan) { p.size = 16380 },
		"conns":    func(p *plan) { p.conns = 0 },
		"duration": func(p *plan) { p.duration = 0 },
	} {
		bad := good
		change(&bad)
		if bad.check() == nil {
			t.Errorf("%s: a bad plan was accepted", name)
		}
	}
}
