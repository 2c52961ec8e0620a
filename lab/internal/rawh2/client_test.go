package rawh2

import (
	"bytes"
	"context"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

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
	testkit.Want(t, r.Calls.Answered.Count() == 3000 && r.Opened == 2 && r.Received.Messages == 4*3000 && r.Sent.Bytes == 20*3000,
		"%d answered over %d connections, got %+v, sent %+v: %v", r.Calls.Answered.Count(), r.Opened, r.Received, r.Sent, r.Failures)
}

// Calls of an open loop begin at their moments, on connections that open meanwhile, and
// nobody's answer is waited for.
func TestCallsOfAnOpenLoop(t *testing.T) {
	r := calls(t, answers(t, ""), `{"connections": 3}`, traffic.Options{Rate: "2000", Calls: 600, Timeout: time.Minute})
	testkit.Want(t, r.Calls.Answered.Count() == 600 && r.Lag.Count() == 600 && r.Opened == 3,
		"%d answered over %d connections, lags of %d: %v", r.Calls.Answered.Count(), r.Opened, r.Lag.Count(), r.Failures)
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
	a := <-ended
	testkit.Want(t, a.Code == 14 && a.Message != "", "got %+v", a)
	c.Close()
}

func TestParseRequest(t *testing.T) {
	r, err := ParseRequest(`{"connections": 4}`)
	testkit.Want(t, err == nil && r == (Request{4, 16, 1}), "got %+v, %v", r, err)
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

// Both blocks of a list decode to it, in the order in which they are sent; the
// later one does so at any time.
func TestBlocks(t *testing.T) {
	list := []string{":method", "POST", ":path", "/bench.Echo/Call", "te", "trailers"}
	decode := func(d *hpack.Decoder, block []byte) (got []string) {
		fields, err := d.DecodeFull(block)
		testkit.Must(t, err)
		for _, f := range fields {
			got = append(got, f.Name, f.Value)
		}
		return got
	}
	first, later := Blocks(list...)
	d := hpack.NewDecoder(4096, nil)
	for _, block := range [][]byte{first, later, later} {
		testkit.EqualList(t, decode(d, block), list, "block %x", block)
	}
	testkit.Want(t, slices.Equal(decode(hpack.NewDecoder(4096, nil), later), list), "the later block depends on the first one")
}

func TestBlockMemo(t *testing.T) {
	var m BlockMemo
	good, again := Blocks("grpc-status", "0", "x", "y")
	bad, _ := Blocks("grpc-status", "8")
	for range 3 {
		for _, block := range [][]byte{good, again} {
			testkit.Want(t, m.Holds(block, "grpc-status", "0"), "block %x: wanted field not found", block)
		}
		testkit.Want(t, !m.Holds(bad, "grpc-status", "0") && !m.Holds([]byte{0xff}, "grpc-status", "0") && !m.Holds(nil, "grpc-status", "0"),
			"a block without the wanted field was accepted")
	}
	for i := range byte(20) {
		other, _ := Blocks("grpc-status", "0", "n", string('a'+i))
		m.Holds(other, "grpc-status", "0")
	}
	testkit.Want(t, m.Holds(good, "grpc-status", "0"), "a forgotten block was not decoded again")
}

func TestMessage(t *testing.T) {
	for _, size := range []int{MinMessage, 17, MaxMessage} {
		m := AppendMessage(nil, size, 7, 3, 258)
		testkit.Want(t, len(m) == prefixBytes+size && len(m) <= maxPayload && Answers(m) == 7,
			"size %d: %d bytes that want %d answers", size, len(m), Answers(m))
		testkit.Want(t, Whole(m) && !Whole(m[:len(m)-1]) && !Whole(m[:4]) && !Whole(nil),
			"size %d: whole and cut messages are confused", size)
		testkit.Want(t, !bytes.Equal(m, AppendMessage(nil, size, 7, 3, 259)) && !bytes.Equal(m, AppendMessage(nil, size, 7, 4, 258)),
			"size %d: two calls have the same message", size)
	}
	testkit.Want(t, Answers(nil) == 1, "what is no message wants one answer")
}
