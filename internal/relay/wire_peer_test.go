package relay

import (
	"bytes"
	"io"
	"maps"
	"math"
	"net"
	"regexp"
	"slices"
	"strings"
	"testing/synctest"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/proto"

	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/testkit"
)

// frames does what a line "c > 1 head; data hi" says. All that it writes is one write.
func (w *wire) frames(name string, write bool, words []string) {
	l, h, p, do := w.locals[name], w.http1s[name], (*testkit.Peer)(nil), w.want
	if write {
		do = w.write
	}
	if l == nil && h == nil {
		p = w.peer(name)
	}
	id := uint32(0)
	script := func() {
		for part := range strings.SplitSeq(strings.Join(words, "\x00"), "\x00;\x00") {
			words := strings.Split(part, "\x00")
			if h == nil && words[0][0] >= '0' && words[0][0] <= '9' {
				id, words = uint32(w.number(words[0])), words[1:]
			}
			switch {
			case l != nil:
				w.local(l, write, id, words[0], words[1:])
			case h != nil:
				w.http1(h, write, words[0], words[1:])
			default:
				do(p, name, id, words[0], words[1:])
			}
		}
	}
	if write && p != nil {
		p.Batch(script)
		return
	}
	script()
}

// headers reads the verbs that are a header list:
//
//	call [/path] [name=value…]    a request of gRPC, with its end
//	open [/path] [name=value…]    the same without
//	page METHOD /path [open]      a request that is not gRPC
//	head                          the beginning of an answer of gRPC
//	answer CODE [text]            an answer in one block
//	trailers CODE [text]          the end of one
//	headers [end] [name=value…]   anything; a value ~*20k is that long, name! is never indexed
//
// Whoever reads a request compares the fields that are named, some; with "exact" the whole
// list, what the relay adds included, and behind that what is named behind "+"; with "whole"
// that is named, too. All others are compared as a whole, unless there is a "...".
func (w *wire) headers(verb string, args []string, write bool) (list []string, last testkit.EndStream, some bool) {
	var texts, fields, behind []string
	into, flags := &fields, map[string]bool{}
	for _, a := range args {
		name, value, isField := strings.Cut(a, "=")
		switch times, long := strings.CutPrefix(value, "~*"); {
		case slices.Contains([]string{"end", "exact", "whole", "..."}, a):
			flags[a] = true
		case a == "+":
			into = &behind
		case !isField || a[0] == '/' || a[0] == '"':
			texts = append(texts, w.unquote(a))
		case long:
			*into = append(*into, name, strings.Repeat("~", int(w.number(times))))
		default:
			*into = append(*into, name, w.unquote(value))
		}
	}
	asked := !write && !flags["whole"] && !flags["exact"]
	switch verb {
	case "call", "open":
		list, last, some = request(append(texts, hello)[0], fields...), verb == "call", asked
	case "page":
		list, last, some = plain(texts[0], texts[1], fields...), len(texts) == 2, asked
	case "head":
		list = append(responseHead(), fields...)
	case "headers":
		list, last, some = fields, testkit.EndStream(flags["end"]), flags["..."]
	case "answer", "trailers":
		last = end
		if verb == "answer" {
			list = responseHead()
		}
		list = append(list, "grpc-status", texts[0])
		if len(texts) > 1 {
			list = append(list, "grpc-message", texts[1])
		}
		list = append(list, fields...)
	}
	if some {
		list = fields
	}
	if flags["exact"] {
		list = append(passedOn(list), behind...)
	}
	return list, last, some
}

// isHeaders tells of the verbs of headers.
func isHeaders(verb string) bool {
	return slices.Contains([]string{"call", "open", "page", "head", "answer", "trailers", "headers"}, verb)
}

// write has a peer write one frame, or what "reply" stands for.
func (w *wire) write(p *testkit.Peer, name string, id uint32, verb string, args []string) {
	if isHeaders(verb) {
		list, last, _ := w.headers(verb, args, true)
		fields := testkit.Fields(list...)
		for i, f := range fields {
			fields[i].Name, fields[i].Never = strings.CutSuffix(f.Name, "!")
		}
		p.WriteFields(id, last, fields)
		return
	}
	arg := func(i int) int64 { return w.number(args[i]) }
	w.pick(verb, map[string]func(){
		"reply":  func() { reply(p, id) },
		"check":  func() { askHealth(p, id, checkPath, strings.Join(args, "")) }, // of a service
		"watch":  func() { askHealth(p, id, watchPath, strings.Join(args, "")) },
		"data":   func() { p.WriteData(id, w.last(args), w.bytes(args[0])) },
		"padded": func() { p.WritePadded(id, w.last(args), w.bytes(args[0]), int(arg(1))) },
		"end":    func() { p.WriteData(id, end, nil) },
		"rst":    func() { p.WriteRST(id, w.code(args[0])) },
		"goaway": func() { p.WriteGoAway(uint32(arg(0)), w.code(args[1]), "") },
		"window": func() { p.WriteWindowUpdate(id, uint32(arg(0))) },
		"ping":   func() { p.WritePing([8]byte{1}) },
		"pong":   func() { p.WritePingAck(w.pings[name][0]); w.pings[name] = w.pings[name][1:] }, // the oldest
		"frame":  func() { p.WriteFrame(http2.FrameType(arg(0)), http2.Flags(arg(1)), id, w.bytes(args[2])) },
		"raw":    func() { p.WriteRaw(w.bytes(args[0])) },
	})
}

// want has a peer read one frame, or what "reply" stands for.
func (w *wire) want(p *testkit.Peer, name string, id uint32, verb string, args []string) {
	if isHeaders(verb) {
		w.wantHeaders(p, id, verb, args)
		return
	}
	w.pick(verb, map[string]func(){
		"reply": func() { wantReply(p, id) },
		"check": func() { w.wantHealth(p, id, args[0]) },  // serving, notserving or none
		"list":  func() { w.wantHealthList(p, id, args) }, // NAME=serving or =notserving…
		"watch": func() { p.WantFields(id, noEnd, responseHead()...); p.WantDataBytes(id, w.bytes(args[0]), noEnd) },
		"data":  func() { p.WantDataBytes(id, w.bytes(args[0]), w.last(args)) },
		"some":  func() { p.WantData(id, w.last(args)) }, // DATA
		"end":   func() { p.WantDataBytes(id, nil, end) },
		"rst":   func() { p.WantRST(id, w.code(args[0])) },
		"goaway": func() { // the last stream, or *
			if last := p.WantGoAway(w.code(args[1])); args[0] != "*" {
				w.same("last stream", int64(last), w.number(args[0]))
			}
		},
		"ping": func() { w.pings[name] = append(w.pings[name], p.WantPing()) },
		"pong": func() { // [BYTES]: behind so many of DATA at most
			if len(args) == 0 {
				p.WantPingAck([8]byte{1})
				return
			}
			before := int64(0)
			for f := p.WantFrame(); f.Kind != testkit.PingAck; f = p.WantFrame() {
				before += int64(len(f.Payload))
			}
			w.within("bytes before it", before, "0.."+args[0])
		},
		"settings": func() {
			got := p.WantSettings()
			for _, s := range w.settings(args) {
				w.same(s.ID.String(), int64(got[s.ID]), int64(s.Val))
			}
		},
		"credit": func() { p.WantCredit(id, w.number(args[0])) },
		"idle":   p.WantIdle,
		"closed": p.WantClosed,
	})
}

// askHealth sends a question about a service.
func askHealth(caller *testkit.Peer, stream uint32, path, service string) {
	msg := append([]byte{0, 0, 0, 0, byte(len(service) + 2), 0x0a, byte(len(service))}, service...)
	caller.Batch(func() {
		caller.WriteHeaders(stream, noEnd, request(path)...)
		caller.WriteData(stream, end, msg)
	})
}

func (w *wire) wantHealth(p *testkit.Peer, id uint32, is string) {
	if is == "none" {
		wantStatus(p, id, "5", "unknown service")
		return
	}
	p.WantFields(id, noEnd, responseHead()...)
	p.WantDataBytes(id, w.bytes(is), noEnd)
	p.WantFields(id, end, "grpc-status", "0")
}

func (w *wire) wantHealthList(p *testkit.Peer, id uint32, want []string) {
	p.WantFields(id, noEnd, responseHead()...)
	var list grpc_health_v1.HealthListResponse
	testkit.Must(w, proto.Unmarshal(p.WantData(id, noEnd)[grpcwire.PrefixLen:], &list))
	p.WantFields(id, end, "grpc-status", "0")
	var got []string
	for name, of := range list.GetStatuses() {
		got = append(got, name+"="+strings.ReplaceAll(strings.ToLower(of.GetStatus().String()), "_", ""))
	}
	slices.Sort(got)
	w.texts(got, want)
}

// wantHeaders compares a header list; a value * is any.
func (w *wire) wantHeaders(p *testkit.Peer, id uint32, verb string, args []string) {
	want, last, some := w.headers(verb, args, false)
	got := p.WantHeaders(id, last)
	for i := 0; i < len(want) && (some || len(got) == len(want)/2); i += 2 {
		name, never := strings.CutSuffix(want[i], "!")
		f := testkit.Field{Name: name, Value: testkit.Value(got, name), Never: never}
		if !some {
			f = got[i/2]
		}
		if f.Name != name || f.Never != never || f.Value != want[i+1] && want[i+1] != "*" {
			w.Fatalf("got %v, want %v", got, want)
		}
	}
	if !some && len(got) != len(want)/2 {
		w.Fatalf("got %v, want %v", got, want)
	}
}

// does has a peer do what is no frame.
func (w *wire) does(name, verb string, args []string) {
	if l := w.locals[name]; l != nil {
		w.pick(verb, map[string]func(){
			"close": l.Close,
			"as":    func() { of := w.callerOf(args); l.as = &of },
		})
		return
	}
	if h := w.http1s[name]; h != nil {
		w.pick(verb, map[string]func(){"close": func() { h.Close() }})
		return
	}
	if conn := w.conns[name]; verb == "hangsup" || verb == "close" && w.peers[name] == nil {
		conn.Close() // without anything more being read from it
		return
	}
	p := w.peer(name)
	w.pick(verb, map[string]func(){
		"close":    p.Close,
		"deaf":     p.StopReading,
		"hears":    p.ReadAgain,
		"anyorder": p.AnyOrder, // of streams
		"refills":  p.Refill,
		"dribble":  func() { p.Dribble(int(w.number(args[0]))) },
		"fragile":  p.Fragile,
		"served": func() { // ID: a call, by the servant
			id := uint32(w.number(args[0]))
			p.WriteHeaders(id, noEnd, request(hello)...)
			p.WriteData(id, end, hi())
			w.servant.serve()
			wantReply(p, id)
		},
		"settings": func() { p.WriteSettings(w.settings(args)...); p.WantSettingsAck() },
		"skip": func() {
			for _, a := range args {
				p.Skip(named(w, w.unquote(a), testkit.Closed))
			}
		},
		"pours": func() { w.pours(p, args) },
	})
}

// pours sends DATA as far as there is credit, up to so many bytes in all; all is as it comes. They
// are zeros, or count.
func (w *wire) pours(p *testkit.Peer, args []string) {
	id, most := uint32(w.number(args[0])), int64(math.MaxInt64)
	if args[1] != "all" {
		most = w.number(args[1])
	}
	for room := int64(1); room > 0; {
		synctest.Wait()
		at := p.Sent(id)
		if room = min(p.Window(id), 16<<10, most-at); room > 0 {
			data := make([]byte, room)
			if len(args) > 2 {
				data = counted(int(at), int(room))
			}
			p.WriteData(id, noEnd, data)
		}
	}
	if args[1] != "all" && p.Sent(id) != most {
		w.Errorf("stands still after %d bytes", p.Sent(id))
	}
}

// counted are so many of the bytes 0 to 250, again and again, from one place on: no two windows of
// them are alike.
func counted(from, n int) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = byte((from + i) % 251)
	}
	return p
}

// encoded is a frame of a worker as bytes.
func (w *wire) encoded(name string, words []string) []byte {
	ours, theirs := net.Pipe()
	read := make(chan []byte)
	go func() { // ends with the pipe
		all, _ := io.ReadAll(ours)
		read <- all
	}()
	p := testkit.NewCaller(w, theirs)
	w.write(p, name, uint32(w.number(words[0])), words[1], words[2:])
	p.Close()
	return <-read
}

// pick does what a verb stands for.
func (w *wire) pick(verb string, verbs map[string]func()) {
	do, ok := verbs[verb]
	if !ok {
		w.Fatalf("%s is none of %v", verb, slices.Sorted(maps.Keys(verbs)))
	}
	do()
}

func (w *wire) last(args []string) testkit.EndStream {
	return testkit.EndStream(slices.Contains(args, "end"))
}

var wireBytes = regexp.MustCompile(`^(hi|twenty|zeros|count|serving|notserving|unknown|hello|"(?:[^"\\]|\\.)*")(?:\*([^\[]+))?(?:\[([^:]*):([^\]]*)\])?$`)

// bytes reads a text in quotes, hi (a message of one byte), twenty (one of 20 with its prefix), zeros or
// count (the bytes 0 to 250, again and again), so many times, and what of that: count*100[50:].
func (w *wire) bytes(word string) []byte {
	m := wireBytes.FindStringSubmatch(word)
	if m == nil {
		w.Fatalf("%s are no bytes", word)
	}
	times, from, to := int64(1), int64(0), int64(math.MaxInt64)
	for i, n := range []*int64{&times, &from, &to} {
		if m[2+i] != "" {
			*n = w.number(m[2+i])
		}
	}
	if m[1] == "count" {
		return counted(int(from), int(min(times, to)-from))
	}
	part := map[string][]byte{
		"hi": hi(), "twenty": append([]byte{0, 0, 0, 0, 15}, "mmmmmmmmmmmmmmm"...), "zeros": {0},
		"hello":   block(request(hello)...),                                                                     // a header block
		"serving": {0, 0, 0, 0, 2, 8, 1}, "notserving": {0, 0, 0, 0, 2, 8, 2}, "unknown": {0, 0, 0, 0, 2, 8, 3}, // as health is told
	}[m[1]]
	if m[1][0] == '"' {
		part = []byte(w.unquote(m[1]))
	}
	all := bytes.Repeat(part, int(times))
	return all[from:min(to, int64(len(all)))]
}

// named finds what has this name among the first so many numbers of a type.
func named[T interface {
	~uint8 | ~uint16 | ~uint32
	String() string
}](w *wire, name string, most T) T {
	for id := T(0); id < most; id++ {
		if id.String() == name {
			return id
		}
	}
	w.Fatalf("%T: there is no %s", most, name)
	return 0
}

func (w *wire) code(name string) http2.ErrCode {
	if name[0] >= '0' && name[0] <= '9' {
		return http2.ErrCode(w.number(name))
	}
	return named(w, name, http2.ErrCodeHTTP11Required+1)
}

func (w *wire) settings(args []string) (all []http2.Setting) {
	for _, a := range args {
		name, value, _ := strings.Cut(a, "=")
		all = append(all, http2.Setting{ID: named(w, name, http2.SettingMaxHeaderListSize+1), Val: uint32(w.number(value))})
	}
	return all
}
