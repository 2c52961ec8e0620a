// Command bench measures what a call costs over WebSocket: callers in a closed loop,
// a server, Redis and a callee, each in a process of its own. `make bench-socket`
// runs it; docs/juggler.md has results.
//
// It compares CPU per call and commands of Redis per call, which depend less on the
// machine and its load than calls per second do.
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/cabrank/cabrank/internal/testkit/redisd"
	"github.com/cabrank/cabrank/test/oldjuggler"
)

func main() {
	plan := plan{}
	flag.IntVar(&plan.callers, "callers", 100, "sockets that call at once, each one call at a time")
	flag.DurationVar(&plan.warmup, "warmup", time.Second, "what comes before and is not counted")
	flag.DurationVar(&plan.lasts, "duration", 5*time.Second, "how long each round is counted")
	flag.IntVar(&plan.rounds, "rounds", 3, "rounds")
	role := flag.String("role", "", "internal: server or callee of a Redis")
	socket := flag.String("redis", "", "internal: its socket")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := do(ctx, plan, *role, *socket); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to be stopped
	}
}

func do(ctx context.Context, plan plan, role, socket string) error {
	if role != "" {
		return play(ctx, role, socket)
	}
	return plan.run(ctx)
}

// play is one of the processes; it ends with its parent, which kills it.
func play(ctx context.Context, role, socket string) error {
	dial := func() (redis.Conn, error) {
		nc, err := net.Dial("unix", socket)
		if err != nil {
			return nil, err
		}
		return redis.NewConn(nc, 0, 0), nil
	}
	if role == "callee" {
		callee, err := oldjuggler.NewCallee(dial, 100, oldjuggler.TestFunctions())
		if err != nil {
			return err
		}
		defer context.AfterFunc(ctx, callee.Close)()
		fmt.Println("ready")
		return callee.Run()
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("ws://%s/ws\n", listener.Addr())
	return http.Serve(listener, oldjuggler.NewServer(oldjuggler.Options{Dial: dial}))
}

// child starts this program in a role and returns the line that it says first.
func child(ctx context.Context, role string, server *redisd.Server) (cmd *exec.Cmd, first string, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, "", err
	}
	return start(ctx, self, "-role", role, "-redis", server.Socket)
}

func start(ctx context.Context, name string, args ...string) (cmd *exec.Cmd, first string, err error) {
	cmd = exec.CommandContext(ctx, name, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, "", err
	}
	if err := cmd.Start(); err != nil {
		return nil, "", err
	}
	first, err = bufio.NewReader(out).ReadString('\n')
	return cmd, strings.TrimSpace(first), err
}
