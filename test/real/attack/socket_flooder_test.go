//go:build real || soak

package attack_test

import (
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/gorilla/websocket"
)

// socketFlooderRole as the first argument makes the test binary an attacker by four sockets,
// as flooderRole does by connections over HTTP/2.
const socketFlooderRole = "socket-flooder"

// socketFlood is what a socket sends once, and then at full speed.
type socketFlood struct {
	name        string
	begin, step []byte
}

func socketFloods() []socketFlood {
	const text, fin, again = 1, 0x80, 4 << 10
	long, numbers := strings.Repeat("x", 1_000_000), strings.Repeat("1,", 500_000)+"1"
	many := func(frame []byte) []byte { return []byte(strings.Repeat(string(frame), again)) }
	return []socketFlood{
		{"empty frames", maskedFrame(text, ""), many(maskedFrame(0, ""))},
		{"pings", nil, many(maskedFrame(fin|text, `{"type":"ping"}`))},
		{"pongs", nil, many(maskedFrame(fin|10, ""))},
		{"long publishes", nil, maskedFrame(fin|text, `{"type":"pub","channel":"c","args":"`+long+`"}`)},
		{"long lists", nil, maskedFrame(fin|text, `{"type":"pub","channel":"c","args":[`+numbers+`]}`)},
		{"long calls", nil, maskedFrame(fin|text, `{"type":"call","id":1,"uri":"nobody","args":"`+long+`"}`)},
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

// runSocketFlooder is the main function of the attacker.
func runSocketFlooder(args []string) error {
	flags := flag.NewFlagSet(socketFlooderRole, flag.ContinueOnError)
	addr := flags.String("addr", "", "who is attacked, HOST:PORT")
	name := flags.String("flood", "", "with what")
	if err := flags.Parse(args); err != nil {
		return err
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	var sent atomic.Int64
	var sending sync.WaitGroup
	var open []*websocket.Conn
	for _, f := range socketFloods() {
		for range 4 {
			if f.name != *name {
				break
			}
			dialer := websocket.Dialer{Subprotocols: []string{"juggler.1"}}
			ws, response, err := dialer.Dial("ws://"+*addr+"/ws", http.Header{})
			if err != nil {
				return err
			}
			response.Body.Close()
			open = append(open, ws)
			conn := ws.NetConn()
			go func() { _, _ = io.Copy(io.Discard, conn) }() // ends with the connection
			sending.Go(func() {
				_, err := conn.Write(f.begin)
				for err == nil {
					var n int
					n, err = conn.Write(f.step)
					sent.Add(int64(n))
				}
			})
		}
	}
	fmt.Fprintln(os.Stderr, floodBegun)
	<-stop
	for _, ws := range open {
		ws.Close()
	}
	sending.Wait()
	_, err := fmt.Fprintf(os.Stdout, "%d MB\n", sent.Load()/1_000_000)
	return err
}
