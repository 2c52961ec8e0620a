package rawh2

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/lab/internal/traffic"
)

// answerer is a worker whose answers can be wrong in one way.
type answerer struct {
	conn  *Conn
	wrong string
}

func (a *answerer) BatchRead() error { return nil }

func (a *answerer) Frame(f Frame) error {
	if f.Type != http2.FrameData {
		return nil
	}
	status, code, message := "200", "0", f.Payload
	switch a.wrong {
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
	head, _ := Blocks(":status", status, "content-type", "application/grpc")
	trailers, _ := Blocks("grpc-status", code)
	if a.wrong != "head" {
		a.conn.Headers(f.Stream, head, false)
	}
	for range Answers(f.Payload) {
		half := len(message) / 2
		if err := a.conn.Send(f.Stream, message[:half], false, nil); err != nil {
			return err
		}
		if err := a.conn.Send(f.Stream, message[half:], a.wrong == "end", nil); err != nil {
			return err
		}
	}
	a.conn.Headers(f.Stream, trailers, true)
	return nil
}

// answers returns where each call is answered until the test ends.
func answers(t *testing.T, wrong string) string {
	t.Helper()
	l := testkit.Listen(t)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				conn := NewConn(c, false, readBuffer)
				conn.Serve(&answerer{conn: conn, wrong: wrong})
			}()
		}
	}()
	return l.Addr().String()
}

// calls makes some of them, as a load does.
func calls(t *testing.T, addr, request string, o traffic.Options) *traffic.Record {
	t.Helper()
	c, err := NewClient(addr, request)
	testkit.Must(t, err)
	defer c.Close()
	if o.Rate == "" {
		o.Duration = 10 * time.Second
	}
	plan, err := o.Plan()
	testkit.Must(t, err)
	r, err := traffic.New(plan, c).Run(t.Context())
	testkit.Must(t, err)
	return r
}

// Calls over right answers, cut in two frames each, are all answered; more of them than a
// connection takes wait for their turn.
func TestCalls(t *testing.T) {
	r := calls(t, answers(t, ""), `{"connections": 2, "bytes": 20, "answers": 4}`, traffic.Options{Callers: 300, Calls: 3000})
	if r.Calls.Answered.Count() != 3000 || r.Opened != 2 || r.Received.Messages != 4*3000 || r.Sent.Bytes != 20*3000 {
		t.Errorf("%d answered over %d connections, got %+v, sent %+v: %v", r.Calls.Answered.Count(), r.Opened, r.Received, r.Sent, r.Failures)
	}
}

// Calls of an open loop begin at their moments, on connections that open meanwhile, and
// nobody's answer is waited for.
func TestCallsOfAnOpenLoop(t *testing.T) {
	r := calls(t, answers(t, ""), `{"connections": 3}`, traffic.Options{Rate: "2000", Calls: 600, Timeout: time.Minute})
	if r.Calls.Answered.Count() != 600 || r.Lag.Count() != 600 || r.Opened != 3 {
		t.Errorf("%d answered over %d connections, lags of %d: %v", r.Calls.Answered.Count(), r.Opened, r.Lag.Count(), r.Failures)
	}
}

// Whatever is wrong with an answer makes its call a failed one.
func TestCallsFindWrongAnswers(t *testing.T) {
	for wrong, say := range map[string]string{
		"status": "not 200", "head": "not 200", "code": "no grpc-status 0", "bytes": "wrong bytes",
		"short": "wrong bytes", "close": "use of closed", "end": "without trailers",
	} {
		t.Run(wrong, func(t *testing.T) {
			r := calls(t, answers(t, wrong), `{"answers": 2}`, traffic.Options{Callers: 1, Calls: 1})
			if len(r.Failures) != 1 || !strings.Contains(r.Failures[0].Message, say) && wrong != "close" {
				t.Errorf("got %v, want %q", r.Failures, say)
			}
		})
	}
	if r := calls(t, "127.0.0.1:1", `{}`, traffic.Options{Callers: 1, Calls: 1}); len(r.Failures) != 1 || !strings.Contains(r.Failures[0].Message, "refused") {
		t.Errorf("nobody listens, got %v", r.Failures)
	}
}

// A call that is not answered ends with its load.
func TestCallEndsWithItsLoad(t *testing.T) {
	c, err := NewClient(testkit.Listen(t).Addr().String(), `{}`) // nobody accepts
	testkit.Must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan traffic.Answer)
	go func() { ended <- c.Call(ctx, traffic.Call{}) }()
	cancel()
	if a := <-ended; a.Code != 14 || a.Message == "" {
		t.Errorf("got %+v", a)
	}
	c.Close()
}

func TestParseRequest(t *testing.T) {
	if r, err := ParseRequest(`{"connections": 4}`); err != nil || r != (Request{4, 16, 1}) {
		t.Errorf("got %+v, %v", r, err)
	}
	for text, want := range map[string]string{
		"":                     "takes such as",
		`{"conns": 1}`:         "unknown field",
		`{"connections": 0}`:   "0 connections",
		`{"bytes": 15}`:        "15 bytes",
		`{"bytes": 16380}`:     "16380 bytes",
		`{"answers": 1000000}`: "1000000 answers",
	} {
		_, err := ParseRequest(text)
		testkit.Refused(t, err, want)
	}
}
