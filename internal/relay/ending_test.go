package relay

import (
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/cabrank/cabrank/internal/testkit"
)

// row is one line of the table of answers that are part of the interface.
type row struct {
	code    int
	status  int
	message string
}

func table() map[ending]row {
	return map[ending]row{
		endedQueueFull:      {8, 503, "cabrank: queue full"},
		endedNoSlot:         {8, 503, "cabrank: no free slot in time"},
		endedNoWorker:       {14, 503, "cabrank: no worker ready"},
		endedDeadlineQueued: {4, 504, "cabrank: deadline exceeded in queue"},
		endedDeadline:       {4, 504, "cabrank: deadline exceeded"},
		endedLost:           {14, 502, "cabrank: worker lost"},
		endedBroken:         {14, 502, "cabrank: bad response from worker"},
		endedHeaders:        {8, 431, "cabrank: headers too large"},
		endedShutdown:       {14, 503, "cabrank: shutting down"},
		endedTimeout:        {3, 400, "cabrank: bad grpc-timeout"},
		endedBuffer:         {8, 503, "cabrank: queue full"},
		endedNoMethod:       {12, 501, "cabrank: no worker has this method"},
		endedToken:          {16, 401, "cabrank: no token that counts"},
		endedBarred:         {7, 403, "cabrank: the token does not allow this method"},
		endedChecks:         {8, 503, "cabrank: too many tokens to look at"},
		endedAsideIdle:      {14, 504, "cabrank: reflection idle"},
		endedLate:           {14, 503, "cabrank: worker refused the call late"},
		endedCycle:          {9, 508, "cabrank: call cycle"},
		endedWontFinish:     {4, 504, "cabrank: deadline would pass"},
		endedRate:           {8, 429, "cabrank: rate limit"},
		endedTooMany:        {8, 429, "cabrank: too many calls"},
		endedStalled:        {10, 408, "cabrank: caller stalled"},
		endedReclaimed:      {8, 429, "cabrank: slot given to another caller"},
		endedDraining:       {14, 503, "cabrank: worker draining"},
		endedConnect:        {12, 501, "cabrank: CONNECT is not served"},
	}
}

// R13: every ending has its exact code, status and message in each form, and a
// token of its own.
func TestEndingBlocks(t *testing.T) {
	answers, tokens := newAnswers(), map[string]ending{}
	for why := range endings {
		want, ok := table()[why]
		if !ok {
			t.Fatalf("ending %d is not in the table", why)
		}
		a := &answers[why]
		if other, taken := tokens[a.token]; taken || a.token == "" {
			t.Errorf("endings %d and %d share the token %q", why, other, a.token)
		}
		tokens[a.token] = why
		tail := []string{"grpc-status", strconv.Itoa(want.code), "grpc-message", want.message}
		wantBlock(t, a.trailers, tail...)
		plain := []string{":status", strconv.Itoa(want.status), "content-type", "text/plain; charset=utf-8", "content-length", strconv.Itoa(len(want.message) + 1)}
		if want.status == 401 {
			plain = append(plain, "www-authenticate", "Bearer") // RFC 9110 11.6.1
		}
		wantBlock(t, a.http, plain...)
		if string(a.body) != want.message+"\n" {
			t.Errorf("body: got %q", a.body)
		}
	}
}

func wantBlock(t *testing.T, block []byte, kv ...string) {
	t.Helper()
	fields, err := hpack.NewDecoder(0, nil).DecodeFull(block)
	if err != nil {
		t.Fatalf("decode: %v", err)
	}
	var got []string
	for _, f := range fields {
		got = append(got, f.Name, f.Value)
	}
	if strings.Join(got, "|") != strings.Join(kv, "|") {
		t.Errorf("got %q, want %q", got, kv)
	}
}

// provoke has a caller's stream 1, with this header list, run into one row of
// the table before any response HEADERS. The script runs in a synctest bubble,
// so that no time passes unless all wait for it.
type provoke struct {
	why    ending
	name   string
	change func(*Options)
	more   []string // fields of the request
	script func(g *rig, caller *testkit.Peer, list []string)
}

func withQueue(length int, timeout time.Duration) func(*Options) {
	return func(o *Options) { o.QueueLength, o.QueueTimeout = length, timeout }
}

// simply sends the request and does nothing more.
func simply(_ *rig, caller *testkit.Peer, list []string) { caller.WriteHeaders(1, end, list...) }

// atWorker sends the request and has the worker do something with its stream.
func atWorker(f func(worker *testkit.Peer)) func(*rig, *testkit.Peer, []string) {
	return func(g *rig, caller *testkit.Peer, list []string) {
		_, worker := g.pipeWorker("w1", 1)
		caller.WriteHeaders(1, end, list...)
		worker.WantHeaders(1, end)
		f(worker)
	}
}

func provocations() []provoke {
	return []provoke{
		{endedQueueFull, "queue of 0", withQueue(0, time.Second), nil, simply},
		{endedNoWorker, "nobody ready", withQueue(9, 10*time.Millisecond), nil, simply},
		{endedNoSlot, "slot taken", withQueue(9, 20*time.Millisecond), nil, func(g *rig, caller *testkit.Peer, list []string) {
			_, worker := g.pipeWorker("w1", 1)
			first := g.pipeCaller()
			first.WriteHeaders(1, noEnd, request(hello)...)
			worker.WantHeaders(1, noEnd)
			caller.WriteHeaders(1, end, list...)
		}},
		{endedDeadlineQueued, "deadline in the queue", nil, []string{"grpc-timeout", "10m"}, simply},
		{endedDeadline, "deadline at the worker", nil, []string{"grpc-timeout", "300m"}, atWorker(func(w *testkit.Peer) {
			w.WantRST(1, http2.ErrCodeCancel)
		})},
		{endedDeadline, "server.proxy_timeout", func(o *Options) { o.CallTimeout = 300 * time.Millisecond }, nil, atWorker(func(w *testkit.Peer) {
			w.WantRST(1, http2.ErrCodeCancel)
		})},
		{endedLost, "connection closed", nil, nil, atWorker((*testkit.Peer).Close)},
		{endedBroken, "DATA before HEADERS", nil, nil, atWorker(func(w *testkit.Peer) {
			w.WriteData(1, noEnd, hi())
			w.WantRST(1, http2.ErrCodeProtocol)
		})},
		{endedBroken, "connection-type field", nil, nil, atWorker(func(w *testkit.Peer) {
			w.WriteHeaders(1, noEnd, append(responseHead(), "connection", "close")...)
			w.WantRST(1, http2.ErrCodeProtocol)
		})},
		{endedBroken, "not HTTP/2 any more", nil, nil, atWorker(func(w *testkit.Peer) {
			w.WriteFrame(http2.FrameSettings, 0, 7, nil)
			w.WantGoAway(http2.ErrCodeProtocol)
		})},
		{endedHeaders, "request too large", nil, []string{"x-large", strings.Repeat("x", 17<<10)}, simply},
		{endedHeaders, "response too large", nil, nil, atWorker(func(w *testkit.Peer) {
			w.WriteHeaders(1, end, append(responseHead(), "x-large", strings.Repeat("x", 17<<10))...)
		})},
		{endedTimeout, "no unit", nil, []string{"grpc-timeout", "10"}, simply},
		{endedTimeout, "nine digits", nil, []string{"grpc-timeout", "123456789S"}, simply},
		{endedTimeout, "twice", nil, []string{"grpc-timeout", "1S", "grpc-timeout", "2S"}, simply},
		{endedCycle, "nine hops", nil, []string{"x-cabrank-hops", "9"}, simply},
		{endedShutdown, "drained", nil, nil, func(g *rig, caller *testkit.Peer, list []string) {
			caller.WriteHeaders(1, end, list...)
			g.wantWaiting(1)
			caller.Skip(testkit.GoAway, testkit.Ping)
			drained := make(chan struct{})
			go func() { defer close(drained); g.Drain(time.Millisecond, nil) }() // bounded by itself
			g.t.Cleanup(func() { <-drained })
		}},
	}
}

// Each row of the table reaches a gRPC caller as trailers-only.
func TestEndingsInGRPC(t *testing.T) {
	for _, p := range provocations() {
		t.Run(p.name, func(t *testing.T) {
			synctest.Test(t, p.inGRPC)
		})
	}
}

func (p provoke) inGRPC(t *testing.T) {
	g := newPipeRig(t, changes(p.change)...)
	caller := g.pipeCaller()
	p.script(g, caller, request(hello, p.more...))
	want := table()[p.why]
	wantStatus(caller, 1, strconv.Itoa(want.code), want.message)
	if n := g.counted(answerOf(p.why).token); n != 1 {
		t.Errorf("%s counted %d times", answerOf(p.why).token, n)
	}
}

// The same rows reach other HTTP callers as a status and a line of text; a
// grpc-timeout means nothing there.
func TestEndingsInHTTP(t *testing.T) {
	for _, p := range provocations() {
		if len(p.more) > 0 && p.more[0] == "grpc-timeout" {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			synctest.Test(t, p.inHTTP)
		})
	}
}

func (p provoke) inHTTP(t *testing.T) {
	g := newPipeRig(t, changes(p.change)...)
	caller := g.pipeCaller()
	p.script(g, caller, plain("GET", "/page", p.more...))
	want := table()[p.why]
	body := want.message + "\n"
	caller.WantFields(1, noEnd, ":status", strconv.Itoa(want.status),
		"content-type", "text/plain; charset=utf-8", "content-length", strconv.Itoa(len(body)))
	caller.WantDataBytes(1, []byte(body), end)
}

func changes(f func(*Options)) []func(*Options) {
	if f == nil {
		return nil
	}
	return []func(*Options){f}
}

// No message names an address of ours.
func TestMessagesNameNoAddress(t *testing.T) {
	for why := range endings {
		if text := answerOf(why).message; strings.ContainsAny(text, "/@[]") || strings.Contains(text, "127.") {
			t.Errorf("%q looks as if it named an address", text)
		}
	}
}
