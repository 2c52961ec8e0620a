// Package rig starts the processes of one arm of a scenario, watches what they use, does
// to them what a scenario says, and leaves none of them.
//
// Start from Start, Rig.Target and Rig.Caller; then Rig.Usage, Rig.Do and Rig.Close. How it goes:
//
//  1. Workers are started, each in a process group of its own, and asked until they
//     answer; then the front, if there is one, with the workers behind it.
//  2. Whoever makes calls is started by what Caller returns, and calls Target.
//  3. Close ends all of it. When this process is killed, `cabrank keeper` does.
//
// Workers are told where to listen as `cabrank run` tells them: {addr}, {host}, {port},
// {index}, {worker}, {slots} and {threads} in the command and in the environment, and
// CABRANK_ADDR, PORT, CABRANK_WORKER, CABRANK_WORKER_INDEX, CABRANK_SLOTS, CABRANK_THREADS
// and RAILS_MAX_THREADS. So one command serves all arms. But threads are as many as slots:
// without Cabrank before it nothing else bounds how many calls a worker runs.
//
// It makes no calls but the question whether somebody answers, and judges nothing.
package rig

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/cabrank/cabrank/lab/internal/result"
	"github.com/cabrank/cabrank/lab/internal/scenario"
	"github.com/cabrank/cabrank/lab/internal/testbed"
)

// Rig is an arm that runs.
//
// Life: Start; ended by Close. Concurrency: any; one event at a time has its way with
// which workers there are.
type Rig struct {
	spec      Spec
	folder    string // where the files of the arm are; it is removed with it
	files     int    // that each process may have open; 0 if it is not known
	keeper    *testbed.Keeper
	tree      *testbed.Tree // nil where no control groups can be made
	pods      *testbed.Pods // the network that all of it runs in; nil: that of this process
	places    []place
	listen    place
	tlsAt     place // of what ends TLS before the front; without a port there is none
	gatewayAt place // the same of the gateway
	front     front
	workers   []*process // nil if the front starts them
	others    []*process // what ends TLS, and the gateway
	notes     []string

	changing sync.Mutex // held while the front is told of workers; taken before mu
	mu       sync.Mutex // guards what follows
	callers  int
	on       []bool // which workers callers are sent to
	coming   []bool // which are being added
}

// Start starts an arm. When it returns every worker and the front answer.
//
// Errors: one line that says what to do; nothing is left then.
func Start(ctx context.Context, spec Spec) (*Rig, error) {
	spec = spec.complete()
	r := &Rig{spec: spec}
	limited, cancel := context.WithTimeout(ctx, spec.Ready)
	defer cancel()
	if err := r.start(limited); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

func (r *Rig) start(ctx context.Context) (err error) {
	if r.folder, err = testbed.TempFolder(); err != nil {
		return err
	}
	if r.keeper, err = testbed.StartKeeper(r.spec.Programs.Lab); err != nil {
		return err
	}
	files, err := testbed.RaiseFiles()
	if err != nil {
		return fmt.Errorf("the limit of open files cannot be set: %w", err)
	}
	r.files = int(files)
	r.openGroups()
	if r.spec.Front.Kind == scenario.FrontDNAT {
		r.openPods()
	}
	if r.places, r.listen, err = r.spec.places(); err != nil {
		return err
	}
	for _, w := range r.spec.Workers {
		r.on = append(r.on, !w.Later)
	}
	r.coming = make([]bool, len(r.on))
	if !r.spec.Front.Starts {
		if err := r.startWorkers(ctx); err != nil {
			return err
		}
	}
	r.front = newFront(r)
	if r.spec.Front.TLS != "" {
		if err := r.makeCert(); err != nil {
			return err
		}
	}
	if err := r.front.start(ctx, r.backends()); err != nil {
		return err
	}
	if r.spec.Front.TLS == scenario.TLSHAProxy {
		if err := r.startTLS(ctx); err != nil {
			return err
		}
	}
	return r.startGateway(ctx)
}

// startWorkers starts those that are there from the beginning, all at once.
func (r *Rig) startWorkers(ctx context.Context) error {
	for i, w := range r.spec.Workers {
		if w.Within {
			continue
		}
		command, env := w.told(i, r.places[i])
		p, err := r.process(fmt.Sprintf("worker %d", i+1), workerName(i), workerName(i), w.CPU, testbed.Program{Command: command, Env: env, Dir: w.Dir, Cores: w.Cores})
		if err != nil {
			return err
		}
		r.workers = append(r.workers, p)
	}
	starting, ctx := errgroup.WithContext(ctx)
	for i, p := range r.workers {
		if !r.spec.Workers[i].Later {
			starting.Go(func() error { return p.begin(ctx, byCall, r.places[i].addr()) })
		}
	}
	return starting.Wait()
}

// backends are where calls are to go now.
func (r *Rig) backends() (addrs []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, on := range r.on {
		if on {
			addrs = append(addrs, r.places[i].addr())
		}
	}
	return addrs
}

// present is how many workers there are from the beginning.
func (r *Rig) present() (n int) {
	for _, w := range r.spec.Workers {
		if !w.Later {
			n++
		}
	}
	return n
}

// Target is what callers dial: host:port, tls://host:port, or dns://HOST:PORT/name:port; the
// gateway, if there is one.
func (r *Rig) Target() string {
	switch {
	case r.gatewayAt.port > 0:
		return r.gatewayAt.addr()
	case r.tlsAt.port > 0:
		return "tls://" + r.tlsAt.addr()
	case r.spec.Front.TLS != "":
		return "tls://" + r.front.target()
	}
	return r.front.target()
}

// Caller returns the command by which a process is started that calls the target, from
// a command that does not know where that can be reached. It goes before the processes
// of the arm where all want the CPU, unless workers are pinned: who then shares a core
// with them has answers one by one if it goes first, which costs the front a third more.
func (r *Rig) Caller(command []string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.callers++
	group, err := r.newGroup(fmt.Sprintf("generator-%d", r.callers), 0)
	if err == nil && group != nil && r.spec.Workers[0].Cores == "" {
		err = group.Prefer()
	}
	if err != nil {
		group = nil // it is told of those that have quotas
	}
	return within(group, r.pods, command)
}

// Notes say what the machine did not allow, a line each.
func (r *Rig) Notes() []string { return slices.Clone(r.notes) }

// Usage is what every process of the arm has used since it began and holds now, with what it has
// started, and this process. What a block has used is what lies between two of them, by Between.
func (r *Rig) Usage() (all []result.Process) {
	for i, p := range r.workers {
		if p.now() != nil || !r.spec.Workers[i].Later {
			all = append(all, p.usage())
		}
	}
	all = append(all, r.front.usage()...)
	for _, p := range r.others {
		all = append(all, p.usage())
	}
	if own, err := testbed.ReadAlone(os.Getpid()); err == nil {
		all = append(all, result.Process{Role: "controller", PID: os.Getpid(), CPU: own.CPU, RSS: own.RSS, PeakRSS: own.PeakRSS})
	}
	return all
}

// Between returns what each process has used from one moment to another, and what it
// holds at the end. One that was not there before has used all that it has.
func Between(from, to []result.Process) (used []result.Process) {
	for _, p := range to {
		if i := slices.IndexFunc(from, func(q result.Process) bool { return q.Role == p.Role }); i >= 0 {
			p.Grown = p.RSS - from[i].RSS
			p.CPU = max(0, p.CPU-from[i].CPU) // less only if nobody has counted what has ended
			p.Throttled = max(0, p.Throttled-from[i].Throttled)
			p.ThrottledFor = max(0, p.ThrottledFor-from[i].ThrottledFor)
		}
		used = append(used, p)
	}
	return used
}

// Close ends all processes and removes all files of the arm.
func (r *Rig) Close() {
	for _, p := range slices.Backward(r.others) {
		p.stop()
	}
	if r.front != nil {
		r.front.stop()
	}
	var ending sync.WaitGroup
	for _, p := range r.workers {
		ending.Go(p.stop)
	}
	ending.Wait()
	if r.keeper != nil {
		r.keeper.Close()
	}
	if r.tree != nil {
		r.tree.Close()
	}
	if r.pods != nil {
		r.pods.Close()
	}
	if r.folder != "" {
		_ = os.RemoveAll(r.folder) // in a folder for temporary files
	}
}
