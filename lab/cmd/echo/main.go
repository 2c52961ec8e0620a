// Command echo is the backend of the raw client (command load): it answers every
// call with its own message, as often as the message says, and "grpc-status 0".
//
//	echo -listen 127.0.0.1:7001,127.0.0.1:7002
//	echo -listen unix:/tmp/a.sock,unix:/tmp/b.sock
//
// On SIGTERM or SIGINT it prints how many calls each listener has answered and
// how many bytes that took, as a JSON list, and exits.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/cabrank/cabrank/lab/internal/echo"
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
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer cancel()
	report, err := echo.Serve(ctx, addrs)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(report)
}
