// Command bench measures what callers over WebSocket cost: calls in a closed loop,
// events for many, sockets that do nothing; of the old server, and of cabrank with Redis
// and without. `make bench-socket` runs it; docs/socket.md has results.
//
// It compares CPU and commands of Redis per call, which depend less on the machine and
// its load than calls per second do. Linux only: it reads /proc.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"
)

func main() {
	p := plan{}
	flag.StringVar(&p.cabrank, "cabrank", "bin/cabrank", "the program that is measured beside the old server")
	flag.StringVar(&p.arms, "arms", "old,mixed,redis,new,memory", "what is measured: old; mixed and redis, with one side of ours over Redis; new, with both; memory, and memory1 and proto1, whose calls are those of juggler.1, as text and as protobuf; workers, workers1 and workersproto, the same for methods of gRPC workers behind cabrank run; bare writes of the same bytes beside events")
	flag.StringVar(&p.parts, "parts", "calls,events,idle", "calls, events, idle")
	flag.IntVar(&p.callers, "callers", 100, "sockets that call at once, each one call at a time")
	flag.IntVar(&p.sockets, "sockets", 1000, "sockets that are idle, or get events")
	flag.DurationVar(&p.warmup, "warmup", time.Second, "what comes before calls and is not counted")
	flag.DurationVar(&p.lasts, "duration", 5*time.Second, "how long each round of calls is counted")
	flag.IntVar(&p.rounds, "rounds", 3, "rounds")
	role := flag.String("role", "", "internal: server, callee or bare")
	socket := flag.String("redis", "", "internal: the socket of Redis")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := do(ctx, p, *role, *socket); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to be stopped
	}
}

func do(ctx context.Context, p plan, role, socket string) error {
	if role != "" {
		return play(ctx, role, socket)
	}
	return p.run(ctx)
}
