package load

import (
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cabrank/cabrank/lab/internal/rawh2"
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
	if a.calls == 1 {
		wrong = "" // the first call goes well, whatever comes
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
				conn := rawh2.NewConn(c, false, rawh2.ReadBuffer)
				conn.Serve(&answerer{conn: conn, wrong: wrong})
			}()
		}
	}()
	return l.Addr().String()
}

// A run over right answers, cut in two frames each, counts all calls and has
// none that failed.
func TestRunCounts(t *testing.T) {
	p := Plan{Addr: server(t, ""), Conns: 2, Streams: 3, Size: 20, Answers: 4, Burst: 2, Indexed: true, Timeout: "5S", Warmup: time.Millisecond, Duration: 100 * time.Millisecond}
	r, err := run(p)
	if err != nil {
		t.Fatal(err)
	}
	if r.Failed != 0 || r.Calls == 0 || r.P50 <= 0 || r.P99 < r.P50 || r.Max < r.P99 || r.CPU != 0 {
		t.Errorf("got %+v", r)
	}
	if r.Request < 25 || r.Answer < 4*25 {
		t.Errorf("%v bytes sent and %v received per call: less than the messages", r.Request, r.Answer)
	}
}

// An open loop makes the calls that were asked for, and its latencies are those
// of all calls that were due.
func TestOpenLoop(t *testing.T) {
	p := Plan{Addr: server(t, ""), Conns: 3, Streams: 100, Size: 16, Answers: 1, Rate: 2000, Warmup: time.Millisecond, Duration: 100 * time.Millisecond, PID: os.Getpid()}
	r, err := run(p)
	if err != nil {
		t.Fatal(err)
	}
	if r.Failed != 0 || r.Calls == 0 || r.P50 <= 0 || r.Rate != 2000 || r.After == nil || r.After.RSSKiB == 0 {
		t.Errorf("got %+v", r)
	}
}

// A server that does not answer makes an open loop's calls wait: for a stream
// of their own, and the wait counts.
func TestOpenLoopCountsTheWait(t *testing.T) {
	sig := newSignals()
	sig.from.Store(0)
	sig.until.Store(int64(time.Second))
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	go io.Copy(io.Discard, b) // ends with the pipe
	p := Plan{Conns: 1, Streams: 2, Size: 16, Answers: 1, Rate: 100}
	c := newClient(rawh2.NewConn(a, true, rawh2.SmallReadBuffer), 0, p, newForm(p), sig)
	pacer := newPacer(p.Rate, []*client{c}, sig)
	pacer.exact, pacer.due = 0, 0
	pacer.start(500 * time.Millisecond)
	r := summarize(p, sig, []*client{c})
	if c.lanes.used != 2 || r.Unsent < 10 || r.Max < 900e3 || r.P50 < 500e3 || r.Lag < 900e3 {
		t.Errorf("%d calls in flight, got %+v", c.lanes.used, r)
	}
}

// Two runs at one rate have the same moments, about as many as were asked for.
func TestPacerRepeats(t *testing.T) {
	due := func() time.Duration {
		p := newPacer(1000, nil, newSignals())
		p.exact = 0
		for range 10_000 {
			before := p.due
			if p.next(); p.due < before || p.due < p.exact || p.due%grid != 0 {
				t.Fatalf("a call is due at %v, then one at %v, exactly %v", before, p.due, p.exact)
			}
		}
		return p.due
	}
	first := due()
	if first != due() || first < 9*time.Second || first > 11*time.Second {
		t.Errorf("10,000 calls at 1,000/s took %v and %v", first, due())
	}
}

func TestSchedule(t *testing.T) {
	var s schedule
	if _, ok := s.next(); ok {
		t.Error("an empty schedule has a next moment")
	}
	s.add(1, 2, 3)
	if at, ok := s.next(); !ok || at != 1 || len(s.left()) != 2 {
		t.Errorf("got %v, %v, left %v", at, ok, s.left())
	}
}

// A stream that stays for long is found beside many that come and go; no two have the
// same slot.
func TestTable(t *testing.T) {
	table := newTable(3)
	stays := &lane{stream: table.next(1)}
	table.put(stays)
	stream := stays.stream
	for range 1000 {
		stream = table.next(stream + 2)
		l := &lane{stream: stream}
		table.put(l)
		if table.of(stream) != l || table.of(stays.stream) != stays || table.used != 2 {
			t.Fatalf("stream %d: %d used, found %v and %v", stream, table.used, table.of(stream), table.of(stays.stream))
		}
		if table.remove(l); table.of(stream) != nil || table.of(stream+64) != nil {
			t.Fatalf("stream %d has gone and is found", stream)
		}
	}
	if stream < 2001 || stream > 2600 {
		t.Errorf("the ids of 1,000 calls end at %d", stream)
	}
}

// Idle connections make one call each and another one at the end, so that a
// connection that was closed meanwhile is seen.
func TestIdle(t *testing.T) {
	p := Plan{Addr: server(t, ""), Conns: 40, Size: 16, Answers: 1, Duration: time.Millisecond, PID: os.Getpid()}
	r, err := idle(p)
	if err != nil || r.Calls != 80 || r.Failed != 0 || r.Before == nil || r.Before.PSSKiB == 0 || r.After == nil {
		t.Errorf("got %+v, %v", r, err)
	}
	p.Addr = server(t, "close")
	if r, err = idle(p); err == nil && r.Failed == 0 {
		t.Errorf("connections were closed, got %+v", r)
	}
	if _, err = idle(Plan{Addr: "127.0.0.1:1", Conns: 2, Size: 16, Answers: 1}); err == nil {
		t.Error("nobody listens, and no error came")
	}
}

func TestFirstAnswer(t *testing.T) {
	began := time.Now().UnixNano()
	r, err := firstAnswer(Plan{Addr: server(t, ""), Size: 16, Answers: 1, Duration: 10 * time.Second})
	if err != nil || r.Calls != 1 || r.FirstAnswer < began || r.FirstAnswer > time.Now().UnixNano() {
		t.Errorf("got %+v, %v", r, err)
	}
	if _, err := firstAnswer(Plan{Addr: "127.0.0.1:1", Size: 16, Answers: 1, Duration: time.Millisecond}); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("nobody listens, got %v", err)
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
			p := Plan{Addr: server(t, wrong), Conns: 1, Streams: 2, Size: 16, Answers: 2, Duration: 50 * time.Millisecond}
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
	if _, err := run(Plan{Addr: "127.0.0.1:1", Conns: 1, Streams: 1, Size: 16, Answers: 1}); err == nil {
		t.Error("nobody listens, and no error came")
	}
}

func TestPlanCheck(t *testing.T) {
	good := Plan{Conns: 1, Streams: 1, Size: 16, Answers: 1, Duration: 1}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*Plan){
		"size":     func(p *Plan) { p.Size = 15 },
		"large":    func(p *Plan) { p.Size = 16380 },
		"conns":    func(p *Plan) { p.Conns = 0 },
		"duration": func(p *Plan) { p.Duration = 0 },
		"rate":     func(p *Plan) { p.Rate = 2 * maxRate },
		"both":     func(p *Plan) { p.Idle, p.First = true, true },
		"paced":    func(p *Plan) { p.Idle, p.Rate = true, 1 },
	} {
		bad := good
		change(&bad)
		if bad.Check() == nil {
			t.Errorf("%s: a bad plan was accepted", name)
		}
	}
}
