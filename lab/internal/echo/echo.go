// Package echo is the backend of the raw client (package load): it answers every call
// with its own message, as often as the message says, and "grpc-status 0". It costs
// little, so that what stands before it can be measured.
package echo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/cabrank/cabrank/lab/internal/measure"
	"github.com/cabrank/cabrank/lab/internal/rawh2"
)

// Serve answers calls at addresses, each host:port or unix:/path, until ctx ends. It
// returns what was done at each: connections that are open then are not waited for.
func Serve(ctx context.Context, addrs []string) ([]measure.BackendCount, error) {
	counts := make([]count, len(addrs))
	form := newForm()
	var listeners []net.Listener
	for i, addr := range addrs {
		l, err := net.Listen(network(addr))
		if err != nil {
			return nil, err
		}
		go accept(l, form, &counts[i]) // ends with the listener
		listeners = append(listeners, l)
	}
	<-ctx.Done()
	for _, l := range listeners {
		l.Close() // removes the file of a unix socket
	}
	report := make([]measure.BackendCount, len(addrs))
	for i := range counts {
		report[i] = counts[i].read()
	}
	return report, nil
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
