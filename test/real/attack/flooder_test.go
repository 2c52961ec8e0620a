//go:build real || soak

package attack_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/gorilla/websocket"
	"golang.org/x/net/http2"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/cabrank/cabrank/test/real/harness"
)

// flooderRole as the first argument makes the test binary an attacker: as much of
// one kind of bytes as one core can send, until it is told to stop. It is a process
// of its own so that it takes no time of those who are measured.
const flooderRole = "flooder"

// floodBegun is what it says on stderr when each of its connections has been made.
const floodBegun = "the flood has begun"

// flood is what a connection sends at full speed.
type flood struct {
	name string
	// begin is sent once.
	begin func(a *harness.Arms)
	// step is sent again and again, each time with the streams that it opens moved on.
	step func(a *harness.Arms)
	// short ends each connection when the other side has answered begin.
	short bool
	// frames are those of a socket instead: the first is sent once.
	frames [][]byte
}

// floodChunk is how many bytes of steps are sent in one write, about.
const floodChunk = 64 << 10

func floods() []flood {
	return []flood{
		// Some 40 octets that are 12 KiB: three times an entry of the table.
		{name: "HPACK bombs",
			begin: func(a *harness.Arms) { check(a, true, "b", strings.Repeat("b", 3800)) },
			step: func(a *harness.Arms) {
				check(a, true, "b", strings.Repeat("b", 3800), "b", strings.Repeat("b", 3800), "b", strings.Repeat("b", 3800))
			}},
		{name: "HPACK bombs beyond the limit",
			begin: func(a *harness.Arms) { check(a, true, "b", strings.Repeat("b", 3800)) },
			step: func(a *harness.Arms) {
				a.Do(a.WriteHeaders(http2.HeadersFrameParam{StreamID: a.Next, EndStream: true, EndHeaders: true,
					BlockFragment: bytes.Repeat([]byte{0xbe}, 1000)}))
				a.Next += 2
			}},
		// Reads have become as large as they may before the first bomb.
		{name: "HPACK bombs behind DATA",
			begin: func(a *harness.Arms) { check(a, true, "b", strings.Repeat("b", 3800)) },
			step: func(a *harness.Arms) {
				for range 20 {
					id := check(a, false)
					for range 3 {
						a.Do(a.WriteData(id, false, make([]byte, 16<<10)))
					}
					a.Do(a.WriteData(id, true, nil))
				}
				for range 6000 {
					check(a, true, "b", strings.Repeat("b", 3800), "b", strings.Repeat("b", 3800), "b", strings.Repeat("b", 3800))
				}
			}},
		{name: "Huffman strings", step: func(a *harness.Arms) { check(a, true, "h", scribble(40<<10)) }},
		{name: "heads of 60 KB", step: func(a *harness.Arms) { plainCheck(a, scribble(60<<10)) }},
		{name: "empty DATA",
			begin: func(a *harness.Arms) { check(a, false) },
			step:  func(a *harness.Arms) { a.Do(a.WriteData(1, false, nil)) }},
		{name: "DATA of one byte", step: func(a *harness.Arms) {
			id := check(a, false)
			for range 1000 {
				a.Do(a.WriteData(id, false, []byte{0}))
			}
			a.Do(a.WriteData(id, true, []byte{0}))
		}},
		{name: "resets", step: func(a *harness.Arms) { a.Do(a.WriteRSTStream(check(a, false), http2.ErrCodeCancel)) }},
		{name: "checks", step: func(a *harness.Arms) { check(a, true) }},
		{name: "connections", short: true},
	}
}

// scribble returns so many bytes in no order.
func scribble(n int) string {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 -_"
	random := rand.New(rand.NewPCG(1, 2))
	text := make([]byte, n)
	for i := range text {
		text[i] = letters[random.IntN(len(letters))]
	}
	return string(text)
}

// check asks for the health of everything, which cabrank answers itself: what is
// measured is cabrank, no worker and no queue.
func check(a *harness.Arms, end bool, more ...string) uint32 {
	id := a.Next
	a.Next += 2
	a.Blocks(id, end, a.Encode(aboutHealth(more...)...))
	return id
}

// aboutHealth is the header list of a check.
func aboutHealth(more ...string) []string {
	list := harness.Asked(more...)
	list[5] = healthpb.Health_Check_FullMethodName
	return list
}

// plainCheck is a check with a large field as it is: not Huffman encoded, not for the
// table (RFC 7541 5.1, 6.2.2).
func plainCheck(a *harness.Arms, value string) {
	list := append(a.Encode(aboutHealth()...), 0x00, 1, 'p', 127)
	rest := len(value) - 127
	for ; rest >= 128; rest /= 128 {
		list = append(list, byte(rest%128+128))
	}
	list = append(append(list, byte(rest)), value...)
	a.Blocks(a.Next, true, list)
	a.Next += 2
}

// steps returns what is sent again and again, and where the streams stand in it
// that have to move on by the returned number each time. a has sent a step, so that
// the next ones find the same table.
func (f flood) steps(a *harness.Arms) (chunk []byte, streams []int, move uint32) {
	a.Out.Reset()
	first := a.Next
	for a.Out.Len() < floodChunk {
		f.step(a)
	}
	chunk = append(chunk, a.Out.Bytes()...)
	for at := 0; at < len(chunk); at += 9 + int(chunk[at])<<16 + int(chunk[at+1])<<8 + int(chunk[at+2]) {
		if binary.BigEndian.Uint32(chunk[at+5:]) >= first {
			streams = append(streams, at+5)
		}
	}
	return chunk, streams, a.Next - first
}

// flooder floods over some connections at a time, each in place of one that ended.
type flooder struct {
	addr  string
	flood flood
	conns int64 // at a time
	tls   bool

	began, sent atomic.Int64 // connections and bytes
}

// runFlooder is the main function of the attacker. It prints what it has sent when a
// signal ends it.
func runFlooder(args []string) error {
	var f flooder
	flags := flag.NewFlagSet(flooderRole, flag.ContinueOnError)
	flags.StringVar(&f.addr, "addr", "", "who is flooded, HOST:PORT")
	name := flags.String("flood", "", "with what")
	flags.Int64Var(&f.conns, "conns", 8, "over so many connections at a time")
	flags.BoolVar(&f.tls, "tls", false, "over TLS")
	if err := flags.Parse(args); err != nil {
		return err
	}
	for _, f.flood = range append(floods(), socketFloods()...) {
		if f.flood.name == *name {
			break
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	began := time.Now()
	var busy sync.WaitGroup
	for range f.conns {
		busy.Go(func() {
			for ctx.Err() == nil {
				f.connection(ctx)
			}
		})
	}
	busy.Wait()
	took := time.Since(began).Seconds()
	_, err := fmt.Fprintf(os.Stdout, "%.0f connections/s, %.2f MB/s\n", float64(f.began.Load())/took, float64(f.sent.Load())/took/1e6)
	return err
}

// connection floods until it is ended.
func (f *flooder) connection(ctx context.Context) {
	dial := func(addr string) (net.Conn, error) { return net.Dial("tcp", addr) }
	if f.flood.frames != nil {
		dial = dialSocketFlood
	}
	nc, err := dial(f.addr)
	if err != nil {
		return
	}
	defer nc.Close()
	_ = nc.(*net.TCPConn).SetLinger(0) // its port is free at once
	leave := context.AfterFunc(ctx, func() { nc.Close() })
	defer leave()
	if f.tls {
		nc = tls.Client(nc, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	}
	if f.began.Add(1) == f.conns {
		fmt.Fprintln(os.Stderr, floodBegun)
	}
	if f.flood.frames != nil {
		go io.Copy(io.Discard, nc) // ends with the connection
		for on := f.send(nc, f.flood.frames[0]); on; {
			on = f.send(nc, f.flood.frames[1])
		}
		return
	}
	a := harness.NewArms()
	a.Do(a.WriteWindowUpdate(0, 1<<30))
	if f.flood.begin != nil {
		f.flood.begin(a)
	}
	if f.flood.step != nil {
		f.flood.step(a)
	}
	f.send(nc, a.Out.Bytes())
	if f.flood.short {
		_, _ = nc.Read(make([]byte, 512)) // whatever ends it, it is over
		return
	}
	go io.Copy(io.Discard, nc) // ends with the connection
	chunk, streams, move := f.flood.steps(a)
	for f.send(nc, chunk) {
		for _, at := range streams {
			binary.BigEndian.PutUint32(chunk[at:], binary.BigEndian.Uint32(chunk[at:])+move)
		}
	}
}

func (f *flooder) send(nc net.Conn, p []byte) bool {
	n, err := nc.Write(p)
	f.sent.Add(int64(n))
	return err == nil
}

// socketFloods are what sockets send.
func socketFloods() []flood {
	const text, fin, again = 1, 0x80, 4 << 10
	long, numbers := strings.Repeat("x", 1_000_000), strings.Repeat("1,", 500_000)+"1"
	many := func(frame []byte) []byte { return []byte(strings.Repeat(string(frame), again)) }
	return []flood{
		{name: "empty frames", frames: [][]byte{maskedFrame(text, ""), many(maskedFrame(0, ""))}},
		{name: "pings", frames: [][]byte{nil, many(maskedFrame(fin|text, `{"type":"ping"}`))}},
		{name: "pongs", frames: [][]byte{nil, many(maskedFrame(fin|10, ""))}},
		{name: "long publishes", frames: [][]byte{nil, maskedFrame(fin|text, `{"type":"pub","channel":"c","args":"`+long+`"}`)}},
		{name: "long lists", frames: [][]byte{nil, maskedFrame(fin|text, `{"type":"pub","channel":"c","args":[`+numbers+`]}`)}},
		{name: "long calls", frames: [][]byte{nil, maskedFrame(fin|text, `{"type":"call","id":1,"uri":"nobody","args":"`+long+`"}`)}},
	}
}

// maskedFrame is a frame of a client, whose mask changes nothing. Source: RFC 6455, section 5.2.
func maskedFrame(first byte, payload string) []byte {
	const masked, two, eight = 0x80, 126, 127
	b := []byte{first}
	switch n := len(payload); {
	case n < two:
		b = append(b, masked|byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, masked|two), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, masked|eight), uint64(n))
	}
	return append(append(b, 0, 0, 0, 0), payload...)
}

// dialSocketFlood opens a socket of juggler.1, of whose connection frames are written as they are.
func dialSocketFlood(addr string) (net.Conn, error) {
	dialer := websocket.Dialer{Subprotocols: []string{"juggler.1"}}
	ws, response, err := dialer.Dial("ws://"+addr+"/ws", nil)
	if err != nil {
		return nil, err
	}
	response.Body.Close()
	return ws.NetConn(), nil
}

// webFlooderRole as the first argument makes the test binary an attacker over HTTP/1.
const webFlooderRole = "web-flooder"

const (
	webPlaces = 8000 // a quarter of which may speak HTTP/1
	webConns  = webPlaces / 2
	webDeep   = 500 // requests of each, one behind the other
)

const hello = "/cabrank.demo.v1.Greeter/SayHello"

// webFloods are requests by their names.
var webFloods = map[string]string{
	"health, which cabrank answers": greeting("/grpc.health.v1.Health/Check", ""),
	"calls of a worker":             greeting(hello, ""),
	"pages from elsewhere":          strings.Replace(greeting(hello, "Origin: https://evil.example\r\n"), "5\r\n\r\n\x00\x00\x00\x00\x00", "0\r\n\r\n", 1),
}

// greeting is a request of gRPC-Web to a method, with one empty message and fields of its own.
func greeting(method, fields string) string {
	return "POST " + method + " HTTP/1.1\r\nHost: a\r\nContent-Type: application/grpc-web\r\n" + fields + "Content-Length: 5\r\n\r\n\x00\x00\x00\x00\x00"
}

// runWebFlooder is the main function of the attacker. It has another address than the caller,
// sends a flood over each of its connections, and asks for nothing back until a signal ends it.
// Who is ended stays away.
func runWebFlooder(args []string) error {
	flags := flag.NewFlagSet(webFlooderRole, flag.ContinueOnError)
	addr := flags.String("addr", "", "who is attacked, HOST:PORT")
	name := flags.String("flood", "", "with what")
	if err := flags.Parse(args); err != nil {
		return err
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	text := strings.Repeat(webFloods[*name], webDeep)
	from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}, Timeout: harness.Patience}
	var conns []net.Conn
	var sending sync.WaitGroup
	for range webConns {
		conn, err := from.Dial("tcp", *addr)
		if err != nil {
			return err
		}
		conns = append(conns, conn)
		sending.Go(func() { _, _ = io.WriteString(conn, text) }) // ends with its connection
	}
	fmt.Fprintln(os.Stderr, floodBegun)
	<-stop
	for _, conn := range conns {
		conn.Close()
	}
	sending.Wait()
	return nil
}
