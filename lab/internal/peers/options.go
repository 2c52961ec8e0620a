package peers

import (
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/cabrank/cabrank/lab/internal/testbed"
)

// options are the command line.
type options struct {
	root       string // of the repository
	cabrank    string
	peers      []peer
	shards     []peer // of the workload that compares shards
	workloads  []workload
	repeats    int
	warmup     time.Duration
	duration   time.Duration
	proxyCore  int
	otherCore  int
	secondCore int    // of the proxy, where it has two
	out        string // folder of the result file, empty for none
	quick      bool
	check      bool
	files      uint64 // that a process may have open
	priority   string // in words
}

const about = `lab %s: %s.

  lab peers -quick                              whether all of it works, about 3 minutes
  lab peers -workloads u16 -peers cabrank,haproxy-tcp,nghttpx
  lab peers -workloads r4k,idle10k -peers cabrank,nghttpx -repeats 3
  lab peers -cabrank /tmp/other/cabrank -out /tmp   another binary, results elsewhere
  lab peers -check                              fail unless every bar is held
  lab raw -check                                what client and backend can do themselves
  lab queue -workloads q70 -peers cabrank-1slot,haproxy-maxconn1

Here lab stands for "bin/lab/lab", in the folder of the repository.
"make bench-peers" and "make bench-queue" build cabrank and install the other proxies
first. bench/README.md explains the table.

`

func (s Scenario) parse(args []string) (o options, err error) {
	var peerNames, workloadNames string
	f := flag.NewFlagSet(s.Name, flag.ContinueOnError)
	f.Usage = func() {
		fmt.Fprintf(f.Output(), about, s.Name, s.About)
		f.PrintDefaults()
	}
	f.StringVar(&o.root, "root", ".", "`folder` of the repository")
	f.StringVar(&o.cabrank, "cabrank", "", "`binary` to measure (default ROOT/bin/cabrank)")
	f.StringVar(&peerNames, "peers", s.peers, "`names` of proxies, separated by commas, or none: "+strings.Join(names(allPeers()), ","))
	f.StringVar(&workloadNames, "workloads", s.workloads, "`names` of workloads, separated by commas: "+strings.Join(names(allWorkloads()), ","))
	f.IntVar(&o.repeats, "repeats", s.repeats, "rounds over all workloads and proxies")
	f.DurationVar(&o.warmup, "warmup", 500*time.Millisecond, "time before the counted part of a run")
	f.DurationVar(&o.duration, "duration", 3*time.Second, "length of the counted part of a run")
	f.IntVar(&o.proxyCore, "proxy-core", 0, "core of the proxy")
	f.IntVar(&o.otherCore, "other-core", 1, "core of everything else")
	f.IntVar(&o.secondCore, "second-core", -1, "second core of the proxy on the workload shards; -1 is the first one that is free, else -other-core")
	f.StringVar(&o.out, "out", "", "`folder` of the result file (default ROOT/bench/results, with -quick none)")
	f.BoolVar(&o.quick, "quick", false, "one short round; nothing to be quoted")
	f.BoolVar(&o.check, "check", false, "fail when a bar is missed or has no valid result")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	if o.quick {
		o.shorten(f)
	}
	if peerNames == "" {
		o.peers = nil
	} else if o.peers, err = choose(peerNames, allPeers()); err != nil {
		return o, fmt.Errorf("-peers: %w", err)
	}
	if o.workloads, err = choose(workloadNames, allWorkloads()); err != nil {
		return o, fmt.Errorf("-workloads: %w", err)
	}
	return o, nil
}

// shorten replaces what was not given by what is quick.
func (o *options) shorten(f *flag.FlagSet) {
	given := map[string]bool{}
	f.Visit(func(one *flag.Flag) { given[one.Name] = true })
	if !given["repeats"] {
		o.repeats = 1
	}
	if !given["warmup"] {
		o.warmup = 200 * time.Millisecond
	}
	if !given["duration"] {
		o.duration = 700 * time.Millisecond
	}
}

// validate makes paths absolute, because proxies run in a folder of their own,
// and looks for what is to be run.
func (o *options) validate() (err error) {
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
	if o.out == "" && !o.quick {
		o.out = filepath.Join(o.root, "bench", "results")
	}
	if o.secondCore < 0 {
		o.secondCore = o.freeCore()
	}
	for _, w := range o.workloads {
		if w.Kind == kindShards {
			o.shards = shardPeers()
		}
	}
	for _, list := range [][]peer{o.peers, o.shards} {
		for i := range list {
			if err := list[i].find(*o); err != nil {
				return err
			}
		}
	}
	return nil
}

// freeCore is the first core that nobody has, or that of the client.
func (o *options) freeCore() int {
	for core := range testbed.Cores() {
		if core != o.proxyCore && core != o.otherCore {
			return core
		}
	}
	return o.otherCore
}
