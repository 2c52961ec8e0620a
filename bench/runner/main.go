// Command runner measures the CPU that cabrank needs for a call beside other
// proxies: side by side in one run, each on one thread of one core, with the
// client and four cheap backends on another core, in a network namespace of
// its own. It prints a table and writes all runs to bench/results.
//
//	go run ./bench/runner -cabrank bin/cabrank
//
// It exits with 1 when a run failed or, with -check, when a bar was missed.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// options are the command line.
type options struct {
	root      string // of the repository
	cabrank   string
	peers     []peer
	workloads []workload
	repeats   int
	warmup    time.Duration
	duration  time.Duration
	proxyCore int
	otherCore int
	out       string // folder of the result file
	check     bool
}

func main() {
	o, err := parse()
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

func parse() (o options, err error) {
	var peerNames, workloadNames string
	flag.StringVar(&o.root, "root", ".", "folder of the repository")
	flag.StringVar(&o.cabrank, "cabrank", "", "binary to measure (default ROOT/bin/cabrank)")
	flag.StringVar(&peerNames, "peers", "cabrank,haproxy-tcp,nghttpx,haproxy-h2", "which proxies, separated by commas")
	flag.StringVar(&workloadNames, "workloads", "u16,u16b8,u16c50", "which workloads, separated by commas; of "+strings.Join(names(allWorkloads()), ","))
	flag.IntVar(&o.repeats, "repeats", 3, "rounds over all workloads and proxies, at least 3 to report")
	flag.DurationVar(&o.warmup, "warmup", 500*time.Millisecond, "time before the counted part of a run")
	flag.DurationVar(&o.duration, "duration", 3*time.Second, "length of the counted part of a run")
	flag.IntVar(&o.proxyCore, "proxy-core", 0, "core of the proxy")
	flag.IntVar(&o.otherCore, "other-core", 1, "core of everything else")
	flag.StringVar(&o.out, "out", "", "folder of the result file (default ROOT/bench/results)")
	flag.BoolVar(&o.check, "check", false, "fail when a bar is missed")
	flag.Parse()
	if o.peers, err = choose(peerNames, allPeers()); err != nil {
		return o, fmt.Errorf("-peers: %w", err)
	}
	if o.workloads, err = choose(workloadNames, allWorkloads()); err != nil {
		return o, fmt.Errorf("-workloads: %w", err)
	}
	return o, nil
}

// validate makes paths absolute, because proxies run in a folder of their own.
func (o *options) validate() (err error) {
	if flag.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flag.Arg(0))
	}
	if o.repeats < 1 || o.duration <= 0 || o.warmup < 0 {
		return errors.New("-repeats must be at least 1, -duration above 0, -warmup not below")
	}
	if o.root, err = filepath.Abs(o.root); err != nil {
		return err
	}
	if o.cabrank == "" {
		o.cabrank = filepath.Join(o.root, "bin", "cabrank")
	}
	if o.cabrank, err = filepath.Abs(o.cabrank); err != nil {
		return err
	}
	if o.out == "" {
		o.out = filepath.Join(o.root, "bench", "results")
	}
	for i := range o.peers {
		if err := o.peers[i].find(*o); err != nil {
			return err
		}
	}
	return nil
}

// bench measures everything, then reports.
func bench(o options) error {
	r, err := newRig(o)
	if err != nil {
		return err
	}
	defer r.remove()
	report := newReport(o)
	for repeat := range o.repeats {
		for _, w := range o.workloads {
			for i := range o.peers {
				p := o.peers[(i+repeat)%len(o.peers)] // nobody is always the first
				run := r.run(p, w, repeat)
				report.Runs = append(report.Runs, run)
				fmt.Fprintln(os.Stderr, run.line())
			}
		}
	}
	report.summarize(o)
	fmt.Print(report.table())
	path, err := report.save(o.out)
	if err != nil {
		return err
	}
	fmt.Printf("\nAll runs are in %s\n", path)
	return report.verdict(o.check)
}
