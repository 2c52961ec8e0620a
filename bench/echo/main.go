// Command echo is the backend of the side-by-side benchmarks: it answers every
// call with its own message, as often as the message says, and "grpc-status 0".
//
//	echo -listen 127.0.0.1:7001,127.0.0.1:7002
//
// On SIGTERM or SIGINT it prints how many calls each listener has answered, as
// a JSON list, and exits.
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
	"sync/atomic"
	"syscall"

	"github.com/cabrank/cabrank/bench/rawh2"
)

func main() {
	listen := flag.String("listen", "", "addresses to listen on, separated by commas")
	flag.Parse()
	if err := run(strings.Split(*listen, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "echo:", err)
		os.Exit(1)
	}
}

func run(addrs []string) error {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	counts := make([]atomic.Uint64, len(addrs))
	form := newForm()
	for i, addr := range addrs {
		l, err := net.Listen("tcp", addr)
		if err != nil {
			return err
		}
		go accept(l, form, &counts[i]) // lives as long as the process
	}
	<-stop
	report := make([]uint64, len(addrs))
	for i := range counts {
		report[i] = counts[i].Load()
	}
	return json.NewEncoder(os.Stdout).Encode(report)
}

func accept(l net.Listener, form *form, calls *atomic.Uint64) {
	for {
		c, err := l.Accept()
		if err != nil {
			fmt.Fprintln(os.Stderr, "echo:", err)
			return
		}
		go serve(c, form, calls) // ends with the connection
	}
}

func serve(c net.Conn, form *form, calls *atomic.Uint64) {
	defer c.Close()
	conn := rawh2.NewConn(c, false)
	err := conn.Serve(newBackend(conn, form, calls))
	if !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
		fmt.Fprintln(os.Stderr, "echo:", err)
	}
}
