// Command oneslot is both ends of a trial with workers that run one call at a
// time (package oneslot): the workers, and the callers of an open loop.
//
//	oneslot work -listen 127.0.0.1:7001 -name a -records .  until SIGTERM; ./a gets a record of each call
//	oneslot call -addr 127.0.0.1:8080 -calls 4000 -load 0.7 prints how each call ended
//
// The lab starts them around each balancer and judges what they tell.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/cabrank/cabrank/internal/testkit/oneslot"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "oneslot:", err)
		os.Exit(1) //nolint:gocritic // the signals may stay
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) > 0 {
		switch args[0] {
		case "work":
			return work(ctx, args[1:])
		case "call":
			return call(ctx, args[1:])
		}
	}
	return errors.New("want work or call, and -help for their flags")
}

func work(ctx context.Context, args []string) error {
	w := &oneslot.Worker{}
	f := flag.NewFlagSet("work", flag.ContinueOnError)
	listen := f.String("listen", os.Getenv("CABRANK_ADDR"), "host:port or unix:/path (default $CABRANK_ADDR)")
	f.StringVar(&w.Name, "name", os.Getenv("CABRANK_WORKER"), "name in the records, and of their file (default $CABRANK_WORKER)")
	records := f.String("records", "", "`folder` of that file")
	busy := f.String("busy", string(oneslot.Run), "what becomes of a call beside another one: it waits and will run, it waits and is `skip`ped when its caller has gone, or it is refused (run, skip, refuse)")
	f.DurationVar(&w.Lag, "lag", 0, "how long after its answer a call still takes the slot")
	f.DurationVar(&w.Stall, "stall", 0, "what every -stall-every-th call takes longer")
	f.IntVar(&w.StallEvery, "stall-every", 0, "see -stall; 0 for no call")
	if err := f.Parse(args); err != nil {
		return err
	}
	switch w.Busy = oneslot.WhenBusy(*busy); w.Busy {
	case oneslot.Run, oneslot.Skip, oneslot.Refuse:
	default:
		return fmt.Errorf("work: -busy %s: want run, skip or refuse", *busy)
	}
	return w.Run(ctx, *listen, filepath.Join(*records, w.Name))
}

func call(ctx context.Context, args []string) error {
	var t oneslot.Trial
	var d oneslot.Demand
	f := flag.NewFlagSet("call", flag.ContinueOnError)
	f.StringVar(&t.Addr, "addr", "127.0.0.1:8080", "where to connect")
	f.IntVar(&t.Conns, "conns", 4, "connections")
	f.DurationVar(&t.Timeout, "timeout", 0, "deadline of each call; 0 for none")
	f.IntVar(&d.Calls, "calls", 4000, "calls in all")
	f.Float64Var(&d.Load, "load", 0.7, "share of the workers' time that the calls need; above 1 is an overload")
	f.IntVar(&d.Workers, "workers", 4, "workers, for -load")
	f.Uint64Var(&d.Seed, "seed", 1, "the same seed makes the same calls")
	if err := f.Parse(args); err != nil {
		return err
	}
	if t.Conns < 1 || d.Calls < 1 || d.Workers < 1 || d.Load <= 0 || t.Timeout < 0 || t.Timeout > time.Hour {
		return errors.New("call: -conns, -calls and -workers must be at least 1, -load above 0, -timeout 0 to 1h")
	}
	t.Calls = d.Draw()
	outcomes, err := t.Run(ctx)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(outcomes)
}
