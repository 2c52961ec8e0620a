// Command runner measures the CPU that cabrank needs for a call, its latency
// and its memory beside other proxies: side by side in one run, each on one
// thread of one core, with the client and four cheap backends on another core,
// in a network namespace of its own. It prints a table and writes all runs to
// bench/results.
//
//	go run ./bench/runner -help
//
// It exits with 1 when a run failed or, with -check, when a bar is not held.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	o, err := parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err == nil {
		err = o.validate()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	}
	if !inside() {
		os.Exit(reenter(o.otherCore))
	}
	if err := bench(o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// bench measures everything, then reports. A signal ends it early: what was
// measured so far is reported all the same.
func bench(o options) error {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	var err error
	if o.files, err = raiseFiles(); err != nil {
		return err
	}
	r, err := newRig(o)
	if err != nil {
		return err
	}
	defer r.remove()
	var putBack func()
	r.priority, putBack = raisePriority() // for the runs, not for the build before
	defer putBack()
	s := newSession(r)
	s.run(ctx)
	s.report.summarize(o)
	fmt.Print(s.report.table())
	if o.out != "" {
		path, err := s.report.save(o.out)
		if err != nil {
			return err
		}
		fmt.Printf("\nAll runs are in %s\n", path)
	}
	return errors.Join(ctx.Err(), s.report.verdict(o.check))
}
