package relay

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/cabrank/cabrank/internal/testkit"
)

// judge sits in the place of a peer and reads along: all that the engine wrote
// to it must be what RFC 9113 and RFC 7541 allow, given what the engine was
// fed. It shares no code with the engine: frames are read by x/net's Framer,
// header blocks by its hpack, and the rules are written down a second time.
//
// A rule that the peer itself broke is not its business; at worst the judge
// then knows of a wider window than the engine does.
type judge struct {
	t      testing.TB
	worker bool // the peer is a worker: the engine is the client

	opened   bool   // the peer's preface (caller) was read
	fedRest  []byte // of what the peer sent, the beginning of a frame
	deaf     bool   // the peer's bytes are no frames any more
	block    uint32 // the stream with an unfinished header block of the peer
	blockEnd bool
	unacked  []settingsSeen // SETTINGS of the peer that the engine has not acknowledged
	pings    [][8]byte      // and PING
	farewell int64          // where in the output the engine knew the peer's GOAWAY; never: none came

	rest     []byte    // of what the engine wrote, the beginning of a frame
	taken    int64     // bytes of the engine's output that were read
	begun    bool      // the engine's preface (client) was read
	greeted  bool      // and its SETTINGS
	settled  int       // how many of these
	asked    [][8]byte // PINGs that the peer has not answered
	dec      *hpack.Decoder
	blocks   int    // header blocks that were read
	list     []byte // a header block that the engine has not finished
	listOn   uint32
	listEnd  bool
	lastOwn  uint32 // the engine's last stream (worker), the peer's (caller)
	goAway   uint32 // last stream of the engine's last GOAWAY
	window   int64  // bytes that the engine may send on the connection
	credit   int64  // bytes that the peer may send
	initial  int64  // the peer's SETTINGS_INITIAL_WINDOW_SIZE
	announce int64  // the engine's
	maxFrame uint32
	limit    uint32 // the peer's SETTINGS_MAX_CONCURRENT_STREAMS
	streams  map[uint32]*judged

	onHeaders func(s *judged, fields []hpack.HeaderField, end bool)
	onData    func(s *judged, p []byte, end bool)
	onReset   func(s *judged)
}

// settingsSeen is one SETTINGS frame of the peer; it counts for the engine from
// its acknowledgement on (RFC 9113 6.5.3).
type settingsSeen struct{ settings []http2.Setting }

// judged is one stream.
type judged struct {
	id       uint32
	window   int64 // bytes that the engine may send
	credit   int64 // bytes that the peer may send
	head     bool  // the engine has sent a final header list
	length   int64 // its content-length; -1: none
	content  int64 // bytes of DATA that the engine has sent
	ended    bool  // the engine has sent END_STREAM
	reset    bool  // the engine has sent RST_STREAM
	endAt    int64 // where in the output the engine knew the peer's END_STREAM; never: none came
	quietAt  int64 // and its RST_STREAM
	priority bool  // the peer has sent PRIORITY, which may be wrong at any time (6.3)
	answered bool
	path     string
	body     []byte
}

// never is a place in the output that is not reached.
const never = 1<<63 - 1

// at is the place in the output of what is being read.
func (j *judge) at() int64 { return j.taken - int64(len(j.rest)) }

// closed reports whether the engine knew that both sides had finished.
func (j *judge) closed(s *judged) bool { return s.ended && j.at() >= s.endAt }

func newJudge(t testing.TB, worker bool) *judge {
	t.Helper()
	return &judge{
		t: t, worker: worker, begun: !worker, opened: worker, farewell: never, goAway: 1<<31 - 1,
		dec: hpack.NewDecoder(4096, nil), window: 65535, credit: 65535, initial: 65535, announce: 65535,
		maxFrame: 16384, limit: 1 << 31, streams: map[uint32]*judged{},
	}
}

// wrong fails the test: the engine broke a rule.
func (j *judge) wrong(section, format string, args ...any) {
	j.t.Helper()
	peer := "caller"
	if j.worker {
		peer = "worker"
	}
	j.t.Fatalf("what a %s was sent breaks %s: %s", peer, section, fmt.Sprintf(format, args...))
}

func (j *judge) open(id uint32) *judged {
	s := &judged{id: id, window: j.initial, credit: j.announce, endAt: never, quietAt: never}
	j.streams[id] = s
	return s
}

// fed reads what the peer sent. known is the place in the output from which on
// the engine has dealt with all of it.
func (j *judge) fed(p []byte, known int64) {
	j.fedRest = append(j.fedRest, p...)
	if n := len(http2.ClientPreface); !j.opened {
		if len(j.fedRest) < n {
			return
		}
		j.opened, j.fedRest = true, j.fedRest[n:]
	}
	for !j.deaf && len(j.fedRest) >= 9 {
		size := 9 + int(j.fedRest[0])<<16 + int(j.fedRest[1])<<8 + int(j.fedRest[2])
		if len(j.fedRest) < size {
			return
		}
		frame := j.fedRest[:size]
		j.fedRest = j.fedRest[size:]
		j.fedFrame(frame, known)
	}
}

func (j *judge) fedFrame(raw []byte, known int64) {
	framer := http2.NewFramer(nil, bytes.NewReader(raw))
	framer.SetMaxReadFrameSize(1<<24 - 1)
	framer.AllowIllegalReads = true // the order of frames is the engine's to judge
	f, err := framer.ReadFrame()
	if kind, id := http2.FrameType(raw[3]), binary.BigEndian.Uint32(raw[5:])&(1<<31-1); kind == http2.FramePriority && j.streams[id] != nil {
		j.streams[id].priority = true
	}
	if err != nil {
		return // the engine knows better what is wrong with it
	}
	s := j.streams[f.Header().StreamID]
	switch f := f.(type) {
	case *http2.SettingsFrame:
		j.fedSettings(f)
	case *http2.PingFrame:
		if !f.IsAck() {
			j.pings = append(j.pings, f.Data)
		}
	case *http2.GoAwayFrame:
		j.farewell = min(j.farewell, known)
	case *http2.WindowUpdateFrame:
		switch {
		case f.StreamID == 0:
			j.window += int64(f.Increment)
		case s != nil:
			s.window += int64(f.Increment)
		}
	case *http2.RSTStreamFrame:
		if s != nil {
			s.quietAt = min(s.quietAt, known)
		}
	case *http2.HeadersFrame:
		j.block, j.blockEnd = f.StreamID, f.StreamEnded()
		j.fedBlock(f.HeadersEnded(), known)
	case *http2.ContinuationFrame:
		j.fedBlock(f.HeadersEnded(), known)
	case *http2.DataFrame:
		j.credit -= int64(f.Length)
		if s != nil {
			s.credit -= int64(f.Length)
			s.fedEnd(f.StreamEnded(), known)
		}
	}
}

func (j *judge) fedSettings(f *http2.SettingsFrame) {
	if f.IsAck() {
		return
	}
	var seen settingsSeen
	for i := range f.NumSettings() {
		seen.settings = append(seen.settings, f.Setting(i))
	}
	j.unacked = append(j.unacked, seen)
}

// fedBlock takes the end of a header block of the peer: a caller opens a stream.
func (j *judge) fedBlock(last bool, known int64) {
	if !last {
		return
	}
	s := j.streams[j.block]
	if s == nil && !j.worker && j.block%2 == 1 && j.block > j.lastOwn {
		j.lastOwn = j.block
		s = j.open(j.block)
	}
	if s != nil {
		s.fedEnd(j.blockEnd, known)
	}
}

func (s *judged) fedEnd(end bool, known int64) {
	if end {
		s.endAt = min(s.endAt, known)
	}
}

// took reads what the engine wrote and its transport has taken.
func (j *judge) took(p []byte) {
	j.t.Helper()
	j.taken += int64(len(p))
	j.rest = append(j.rest, p...)
	if !j.begun {
		if len(j.rest) < len(http2.ClientPreface) {
			return
		}
		if !bytes.HasPrefix(j.rest, []byte(http2.ClientPreface)) {
			j.wrong("3.4", "no preface: %q", j.rest)
		}
		j.begun, j.rest = true, j.rest[len(http2.ClientPreface):]
	}
	for len(j.rest) >= 9 {
		size := 9 + int(j.rest[0])<<16 + int(j.rest[1])<<8 + int(j.rest[2])
		if uint32(size-9) > j.maxFrame {
			j.wrong("4.2", "a frame of %d octets, %d are allowed", size-9, j.maxFrame)
		}
		if len(j.rest) < size {
			return
		}
		j.frame(j.rest[:size])
		j.rest = j.rest[size:]
	}
}

func (j *judge) frame(raw []byte) {
	j.t.Helper()
	framer := http2.NewFramer(nil, bytes.NewReader(raw))
	framer.SetMaxReadFrameSize(1<<24 - 1)
	framer.AllowIllegalReads = true // the order of frames is judged here
	f, err := framer.ReadFrame()
	if err != nil {
		j.wrong("6", "%x: %v (%v)", raw, err, framer.ErrorDetail())
	}
	h := f.Header()
	if _, ok := f.(*http2.SettingsFrame); !j.greeted && !ok {
		j.wrong("3.4", "%v before SETTINGS", h)
	}
	if _, ok := f.(*http2.ContinuationFrame); (j.listOn != 0) != ok || (ok && h.StreamID != j.listOn) {
		j.wrong("6.10", "%v inside the block of stream %d", h, j.listOn)
	}
	switch f := f.(type) {
	case *http2.SettingsFrame:
		j.settings(f)
	case *http2.PingFrame:
		j.ping(f)
	case *http2.GoAwayFrame:
		if f.LastStreamID > j.goAway {
			j.wrong("6.8", "GOAWAY with %d after %d", f.LastStreamID, j.goAway)
		}
		j.goAway = f.LastStreamID
	case *http2.WindowUpdateFrame:
		j.windowUpdate(f)
	case *http2.RSTStreamFrame:
		j.rst(f)
	case *http2.HeadersFrame:
		j.list, j.listOn, j.listEnd = append(j.list[:0], f.HeaderBlockFragment()...), f.StreamID, f.StreamEnded()
		if f.HeadersEnded() {
			j.headers()
		}
	case *http2.ContinuationFrame:
		j.list = append(j.list, f.HeaderBlockFragment()...)
		if f.HeadersEnded() {
			j.headers()
		}
	case *http2.DataFrame:
		j.data(f)
	default:
		j.wrong("6", "a frame that the engine never sends: %v", h)
	}
}

func (j *judge) settings(f *http2.SettingsFrame) {
	j.t.Helper()
	j.greeted = true
	if !f.IsAck() {
		j.settled++
		for i := range f.NumSettings() {
			if err := f.Setting(i).Valid(); err != nil {
				j.wrong("6.5.2", "%v: %v", f.Setting(i), err)
			}
			if f.Setting(i).ID == http2.SettingInitialWindowSize {
				j.announce = int64(f.Setting(i).Val)
			}
		}
		return
	}
	if len(j.unacked) == 0 {
		j.wrong("6.5.3", "SETTINGS acknowledged that the peer did not send")
	}
	for _, s := range j.unacked[0].settings {
		switch s.ID { //nolint:exhaustive // the others do not bind the engine
		case http2.SettingInitialWindowSize:
			for _, open := range j.streams {
				open.window += int64(s.Val) - j.initial
			}
			j.initial = int64(s.Val)
		case http2.SettingMaxFrameSize:
			j.maxFrame = s.Val
		case http2.SettingMaxConcurrentStreams:
			j.limit = s.Val
		}
	}
	j.unacked = j.unacked[1:]
}

func (j *judge) ping(f *http2.PingFrame) {
	j.t.Helper()
	if !f.IsAck() {
		j.asked = append(j.asked, f.Data)
		return
	}
	if len(j.pings) == 0 || j.pings[0] != f.Data {
		j.wrong("6.7", "PING %x acknowledged, of %x", f.Data, j.pings)
	}
	j.pings = j.pings[1:]
}

// stream returns the stream of a frame, which may not be idle (5.1) and must
// not have been ended by the engine, nor by the peer where it knew of that.
func (j *judge) stream(h http2.FrameHeader) *judged {
	j.t.Helper()
	s := j.streams[h.StreamID]
	switch {
	case s == nil:
		j.wrong("5.1", "%v on an idle stream", h)
	case s.reset, j.closed(s):
		j.wrong("5.1", "%v on a closed stream", h)
	case j.at() >= s.quietAt:
		j.wrong("5.1", "%v on a stream that the peer has reset", h)
	}
	return s
}

func (j *judge) windowUpdate(f *http2.WindowUpdateFrame) {
	j.t.Helper()
	credit, most := &j.credit, int64(connWindow)
	if f.StreamID != 0 {
		credit, most = &j.stream(f.FrameHeader).credit, 1<<20
	}
	// x/net's Framer has refused an increment of 0. The engine counts a DATA
	// frame when it begins, the judge when it is whole.
	if *credit += int64(f.Increment); *credit > most+16384 {
		j.wrong("R11", "the window of stream %d becomes %d", f.StreamID, *credit)
	}
}

// rst takes the end of a stream. A caller that goes on sending on a stream that
// it has ended or reset itself is told so again (5.1, closed); a block that is
// refused opens no stream that the engine knows.
func (j *judge) rst(f *http2.RSTStreamFrame) {
	j.t.Helper()
	s := j.streams[f.StreamID]
	switch {
	case s == nil && j.worker, f.StreamID > j.lastOwn:
		j.wrong("6.4", "%v on an idle stream", f.Header())
	case s == nil:
		return
	case j.worker && !s.priority && (s.reset || j.closed(s) || j.at() >= s.quietAt):
		j.wrong("5.1", "%v on a closed stream", f.Header())
	}
	if !s.reset && j.onReset != nil {
		j.onReset(s)
	}
	s.reset = true
}

func (j *judge) headers() {
	j.t.Helper()
	id, end := j.listOn, j.listEnd
	j.listOn = 0
	if j.blocks++; j.blocks == 1 && (len(j.list) == 0 || j.list[0] != 0x20) {
		j.wrong("R12", "the first block does not begin with a table size update to 0: %x", j.list)
	}
	fields, err := j.dec.DecodeFull(j.list)
	if err != nil {
		j.wrong("4.3", "block %x: %v", j.list, err)
	}
	s := j.streams[id]
	if s == nil && j.worker {
		s = j.begin(id)
	} else {
		s = j.stream(http2.FrameHeader{Type: http2.FrameHeaders, StreamID: id})
	}
	switch {
	case s.ended:
		j.wrong("5.1", "HEADERS behind END_STREAM on %d", id)
	case s.head && !end:
		j.wrong("8.1", "trailers without END_STREAM on %d", id)
	}
	if fault := j.faultOf(fields, s.head); fault != "" {
		j.wrong("8.2 and 8.3", "%s: %q on %d", fault, fields, id)
	}
	if !s.head {
		s.length = contentLength(fields)
	}
	s.head, s.ended = true, end
	j.whole(s)
	if j.onHeaders != nil {
		j.onHeaders(s, fields, end)
	}
}

// faultOf names the rule that a header list breaks. A worker gets neither CONNECT nor joined
// binary values, for some take no list (R12).
func (j *judge) faultOf(fields []hpack.HeaderField, trailers bool) string {
	of := map[bool]testkit.Message{true: testkit.Request, false: testkit.Response}[j.worker]
	if trailers {
		of = testkit.Trailers
	}
	for _, f := range fields {
		if j.worker && (f.Name == ":method" && f.Value == "CONNECT" || strings.HasSuffix(f.Name, "-bin") && strings.Contains(f.Value, ",")) {
			return f.Name
		}
	}
	if of == testkit.Request && testkit.HostDiffers(fields) {
		return "host"
	}
	return testkit.FieldFault(of, fields, j.worker)
}

func contentLength(fields []hpack.HeaderField) int64 {
	for _, f := range fields {
		if n, err := strconv.ParseInt(f.Value, 10, 64); f.Name == "content-length" && err == nil {
			return n
		}
	}
	return -1
}

// begin takes a new stream of the engine.
func (j *judge) begin(id uint32) *judged {
	j.t.Helper()
	if id%2 == 0 || id <= j.lastOwn {
		j.wrong("5.1.1", "stream %d is opened after %d", id, j.lastOwn)
	}
	if j.at() > j.farewell {
		j.wrong("6.8", "stream %d is opened after GOAWAY", id)
	}
	n := uint32(0)
	for _, s := range j.streams {
		if !s.reset && j.at() < s.quietAt && !j.closed(s) {
			n++
		}
	}
	if n >= j.limit {
		j.wrong("5.1.2", "stream %d is opened beside %d, %d are allowed", id, n, j.limit)
	}
	j.lastOwn = id
	return j.open(id)
}

func (j *judge) data(f *http2.DataFrame) {
	j.t.Helper()
	s := j.stream(f.FrameHeader)
	if !s.head || s.ended {
		j.wrong("8.1", "%v with head %t, end %t", f.Header(), s.head, s.ended)
	}
	s.window -= int64(f.Length)
	j.window -= int64(f.Length)
	// An empty frame is no matter of windows (6.9.1), which may be negative.
	if f.Length > 0 && (s.window < 0 || j.window < 0) {
		j.wrong("6.9.1", "%v: windows become %d, %d", f.Header(), s.window, j.window)
	}
	s.ended, s.content = f.StreamEnded(), s.content+int64(len(f.Data()))
	j.whole(s)
	if j.onData != nil {
		j.onData(s, f.Data(), s.ended)
	}
}

// whole checks the length of a request that has ended. That of an answer
// depends on what was asked for (RFC 9110 8.6).
func (j *judge) whole(s *judged) {
	j.t.Helper()
	if j.worker && s.ended && s.length >= 0 && s.content != s.length {
		j.wrong("8.1.1", "%d bytes of %d on %d", s.content, s.length, s.id)
	}
}
