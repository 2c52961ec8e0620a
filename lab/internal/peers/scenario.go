// Package peers has the scenarios that set cabrank beside other proxies: the CPU that
// it needs for a call, its latency and its memory (peers), and its queue before workers
// of one slot (queue); and the client without a proxy (raw). All proxies are measured in one run, each on one thread of one
// core, with the client and four cheap backends on another core, in a network namespace
// of its own. A scenario prints a table and writes all runs to bench/results.
//
// Start from Scenarios. It starts cabrank as anybody does.
package peers

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/cabrank/cabrank/lab/internal/testbed"
)

// Scenario is a choice of workloads and proxies under a name. Flags can change it.
type Scenario struct {
	Name  string
	About string // in a line

	workloads, peers string // names, separated by commas
	repeats          int
}

// Scenarios returns those of this package.
func Scenarios() []Scenario {
	return []Scenario{
		{
			Name: "peers", About: "CPU per call, latency and memory beside other proxies, about 30 minutes",
			workloads: defaultWorkloads, peers: strings.Join(names(allPeers()), ","), repeats: enoughPairs,
		},
		{
			Name: "queue", About: "workers of one slot behind cabrank and other proxies, beside the perfect queue, half an hour",
			workloads: "q70,q140,q140skip,q70refuse,q140refuse",
			peers:     "cabrank-1slot,cabrank-workers,haproxy-maxconn1,haproxy-h2,nghttpx,envoy", repeats: 3,
		},
		{
			Name: "raw", About: "whether the raw client is fast enough, and sends in time, without a proxy, a minute",
			workloads: "raw", repeats: enoughPairs,
		},
	}
}

// Run measures what the scenario says, or the flags in args, and returns the exit
// status of the process: 1 when a run failed or, with -check, when a bar is not held;
// 2 for wrong flags. The process starts itself again, with the same arguments, in a
// network namespace.
func (s Scenario) Run(args []string) (exit int) {
	o, err := s.parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err == nil {
		err = o.validate()
	}
	if err != nil {
		return fail(err, 2)
	}
	switch inside, err := testbed.Inside(); {
	case err != nil:
		return fail(err, 1)
	case !inside:
		return testbed.Reenter(o.otherCore)
	}
	if err := measureAll(o); err != nil {
		return fail(err, 1)
	}
	return 0
}

func fail(err error, exit int) int {
	fmt.Fprintln(os.Stderr, "lab:", err)
	return exit
}

// measureAll measures everything, then reports. A signal ends it early: what was
// measured so far is reported all the same.
func measureAll(o options) error {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	var err error
	if o.files, err = testbed.RaiseFiles(); err != nil {
		return err
	}
	r, err := newRig(o)
	if err != nil {
		return err
	}
	defer r.remove()
	var putBack func()
	r.priority, putBack = testbed.RaisePriority() // for the runs, not for the build before
	defer putBack()
	s, err := newSession(r)
	if err != nil {
		return err
	}
	defer s.close()
	s.run(ctx)
	s.report.summarize(o)
	fmt.Fprint(os.Stdout, s.report.table())
	if o.out != "" {
		path, err := s.report.save(o.out, s.kept)
		if err != nil {
			return err
		}
		fmt.Fprintf(os.Stdout, "\nAll runs are in %s, their histograms in %s beside it\n", path, s.report.Histograms)
	}
	return errors.Join(ctx.Err(), s.lost, s.report.verdict(o.check))
}
