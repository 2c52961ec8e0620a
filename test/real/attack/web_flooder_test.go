//go:build real || soak

package attack_test

import (
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"

	"github.com/cabrank/cabrank/test/real/harness"
)

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
