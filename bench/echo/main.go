// Command echo is the backend of the side-by-side benchmarks: it answers every
// call with its own message, as often as the message says, and "grpc-status 0".
//
//	echo -listen 127.0.0.1:7001,127.0.0.1:7002
//	echo -listen unix:/tmp/a.sock,unix:/tmp/b.sock
//
// On SIGTERM or SIGINT it prints how many calls each listener has answered and
// how many bytes that took, as a JSON list, and exits.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/cabrank/cabrank/internal/lab/measure"
	"github.com/cabrank/cabrank/internal/lab/rawh2"
)

func main() {
	listen := flag.String("listen", "", "addresses to listen on, host:port or unix:/path, separated by commas")
	flag.Parse()
	if err := run(strings.Split(*listen, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "echo:", err)
		os.Exit(1)
	}
}

func run(addrs []string) error {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	counts := make([]count, len(addrs))
	form := newForm()
	var listeners []net.Listener
	for i, addr := range addrs {
		l, err := net.Listen(network(addr))
		if err != nil {
			return err
		}
		go accept(l, form, &counts[i]) // lives as long as the process
		listeners = append(listeners, l)
	}
	<-stop
	for _, l := range listeners {
		l.Close() // removes the file of a unix socket
	}
	report := make([]measure.BackendCount, len(addrs))
	for i := range counts {
		report[i] = counts[i].read()
	}
	return json.NewEncoder(os.Stdout).Encode(report)
}

// network takes an address apart for net.Listen.
func network(addr string) (network, address string) {
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		return "unix", path
	}
	return "tcp", addr
}

func accept(l net.Listener, form *form, count *count) {
	for {
		c, err := l.Accept()
		if err != nil {
			if !errors.Is(err, net.ErrClosed) {
				fmt.Fprintln(os.Stderr, "echo:", err)
			}
			return
		}
		go serve(c, form, count) // ends with the connection
	}
}

func serve(c net.Conn, form *form, count *count) {
	defer c.Close()
	conn := rawh2.NewConn(c, false, rawh2.ReadBuffer)
	b := newBackend(conn, form, count)
	err := conn.Serve(b)
	b.publish()
	if !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {
		fmt.Fprintln(os.Stderr, "echo:", err)
	}
}
