package rig

import (
	"context"
	"fmt"
	"slices"

	"github.com/cabrank/cabrank/internal/testkit/ports"
	"github.com/cabrank/cabrank/lab/internal/proxies"
	"github.com/cabrank/cabrank/lab/internal/result"
	"github.com/cabrank/cabrank/lab/internal/testbed"
)

// The proxies of others, which must be installed; package proxies has their
// configurations.
const (
	// HAProxyTCP balances connections.
	HAProxyTCP Kind = "haproxy-tcp"
	// HAProxy balances calls, and gives a worker no more of them than it has slots.
	HAProxy Kind = "haproxy"
	// Envoy, Nginx and Nghttpx balance calls.
	Envoy   Kind = "envoy"
	Nginx   Kind = "nginx"
	Nghttpx Kind = "nghttpx"
)

// proxyFront is a proxy of others.
type proxyFront struct {
	rig     *Rig
	proxy   proxies.Proxy
	config  proxies.Config
	process *process
}

func newProxyFront(r *Rig) front {
	p, _ := proxies.Find(string(r.spec.Front.Kind)) // the kinds have the names of proxies
	return &proxyFront{rig: r, proxy: p}
}

func (f *proxyFront) start(ctx context.Context, backends []string) error {
	spec := f.rig.spec
	path, err := f.proxy.Look()
	if err != nil {
		return err
	}
	f.config = proxies.Config{
		Listen: f.target(), Workers: f.workers(backends), Policy: spec.Front.Policy, Threads: spec.Front.Threads,
		Queue: true, Checks: true, Connections: max(0, f.rig.files/2-spareFiles), Files: f.rig.files,
		Control: f.rig.folder.file("proxy.sock"), Members: f.rig.folder.file("members.yaml"),
	}
	if f.proxy.Name == string(Nghttpx) {
		port, err := ports.Free(1)
		if err != nil {
			return err
		}
		f.config.Control = place{"127.0.0.1", port}.addr()
	}
	args, err := f.proxy.Write(f.rig.folder.path, f.config)
	if err != nil {
		return err
	}
	group, err := f.rig.newGroup("front", spec.Front.CPU)
	if err != nil {
		return err
	}
	f.process = &process{role: "front", name: f.proxy.Name, group: group, program: testbed.Program{
		Command: append(append([]string{path}, args...), spec.Front.Args...), Env: spec.Front.Env,
		Dir: f.rig.folder.path, Keeper: f.rig.keeper,
	}}
	if err := f.process.start(); err != nil {
		return err
	}
	return f.process.ready(ctx, byCall, f.target())
}

// spareFiles is what a proxy opens beside connections, amply.
const spareFiles = 200

// workers are all that there may be; those are out that get no calls now.
func (f *proxyFront) workers(backends []string) (all []proxies.Worker) {
	for i, w := range f.rig.spec.Workers {
		addr := f.rig.places[i].addr()
		all = append(all, proxies.Worker{
			Name: fmt.Sprintf("worker-%d", i+1), Addr: addr, Slots: w.Slots, Out: !slices.Contains(backends, addr),
		})
	}
	return all
}

func (f *proxyFront) target() string { return f.rig.listen.addr() }

func (f *proxyFront) change(ctx context.Context, backends []string) error {
	f.config.Workers = f.workers(backends)
	return f.proxy.Change(ctx, f.rig.folder.path, f.process.now().PID(), f.config)
}

func (f *proxyFront) usage() []result.Process {
	if f.process == nil {
		return nil
	}
	return []result.Process{f.process.usage()}
}

func (f *proxyFront) stop() {
	if f.process != nil {
		f.process.stop()
	}
}
