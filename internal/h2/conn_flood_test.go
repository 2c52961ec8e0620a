package h2

import (
	"strings"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

// A peer that makes us answer and does not read is bounded (RFC 9113 10.5),
// also if it keeps to its allowances.
func TestControlFlood(t *testing.T) {
	floods := map[string]func(i int) *wireBytes{
		"PING":     func(int) *wireBytes { return wire().ping(false, "12345678") },
		"SETTINGS": func(int) *wireBytes { return wire().settings() },
		"HEADERS":  func(i int) *wireBytes { return wire().request(uint32(2*i+1), true, "Mal", "formed") },
	}
	for name, one := range floods {
		t.Run(name, func(t *testing.T) {
			r := newServer(t)
			n := 0
			for ; n < maxControl; n++ {
				r.now += time.Second / 10
				r.feed(one(n))
			}
			var err error
			for ; err == nil && n < 2*maxControl; n++ {
				r.now += time.Second / 10
				err = r.conn.Feed(one(n).b.Bytes(), r.now)
			}
			testkit.Want(t, err != nil && err.Error() == "ENHANCE_YOUR_CALM: control_flood", "after %d frames: %v", n, err)
			testkit.Want(t, len(r.conn.Output()) <= (20*2*maxControl), "%d bytes wait", len(r.conn.Output()))
		})
	}
}

// A peer that reads may make us answer as often as it likes, also when our
// output is never quite empty, as in a long download.
func TestControlOfAPeerThatReads(t *testing.T) {
	r := newServer(t)
	r.feed(wire().request(1, true))
	in := wire()
	for range 100 {
		in.ping(false, "12345678")
	}
	r.conn.WriteData(r.streams[1], make([]byte, 1000), false)
	for range 1000 {
		r.now += 10 * time.Second
		r.feed(in)
		r.conn.Sent(1700)
		testkit.Need(t, !r.conn.Idle(), "the output is empty")
	}
}

// RFC 9113 6.10, CVE-2024-27316: a block that never ends is bounded by the list
// limit.
func TestContinuationFlood(t *testing.T) {
	r := newServer(t)
	r.feed(wire().frame(frameHeaders, 0, 1, "\x82"))
	part := wire().frame(frameContinuation, 0, 1, strings.Repeat("\x82", 1000))
	var err error
	n := 0
	for ; err == nil && n < 1000; n++ {
		err = r.conn.Feed(part.b.Bytes(), r.now)
	}
	testkit.Need(t, err != nil && err.Error() == "ENHANCE_YOUR_CALM: continuation_flood", "%v", err)
	most := blockFactor*int(r.cfg.MaxHeaderList)/1000 + 1
	testkit.Want(t, n <= most, "%d frames were taken, %d are allowed", n, most)
}

// RFC 9113 6.10, CVE-2024-27316: and by the number of its frames.
func TestContinuationFloodOfSmallFrames(t *testing.T) {
	r := newServer(t)
	r.feed(wire().frame(frameHeaders, 0, 1, "\x82"))
	for range maxFragments - 1 {
		r.feed(wire().frame(frameContinuation, 0, 1, "\x86"))
	}
	r.fail(wire().frame(frameContinuation, 0, 1, "\x86"), "ENHANCE_YOUR_CALM: continuation_flood")
}

// A caller that makes calls and never reads the answers is bounded too: it
// cannot have taken an answer that is still here.
func TestAnswerFlood(t *testing.T) {
	r := newServer(t, func(c *Config) { c.MaxStreams = 10 })
	answer := stateless(":status", "200", "x", strings.Repeat("x", 1000))
	r.onHeaders = func(s *Stream, _ bool) {
		r.log = nil
		r.conn.WriteHeaders(s, true, answer)
	}
	var err error
	id := uint32(1)
	for ; err == nil && id < 10000; id += 2 {
		err = r.conn.Feed(wire().request(id, true).b.Bytes(), r.now)
	}
	testkit.Need(t, err != nil && err.Error() == "ENHANCE_YOUR_CALM: output_flood", "%d bytes wait: %v", len(r.conn.Output()), err)
	most := r.cfg.OutputHigh + maxBlocks*10*int(r.cfg.MaxHeaderList) + 2000
	testkit.Want(t, len(r.conn.Output()) <= most, "%d bytes wait, %d are allowed", len(r.conn.Output()), most)
}
