package rig

import (
	"context"
	"slices"

	"github.com/cabrank/cabrank/internal/testkit/ports"
	"github.com/cabrank/cabrank/lab/internal/proxies"
	"github.com/cabrank/cabrank/lab/internal/scenario"
	"github.com/cabrank/cabrank/lab/internal/testbed"
)

// proxyFront is a proxy of others, which must be installed; package proxies has their
// configurations.
type proxyFront struct {
	base
	proxy  proxies.Proxy
	config proxies.Config
}

func (f *proxyFront) start(ctx context.Context, backends []string) error {
	spec := f.rig.spec
	path, err := f.proxy.Look()
	if err != nil {
		return err
	}
	f.config = proxies.Config{
		Listen: f.target(), Workers: f.workers(backends), Policy: spec.Front.Policy,
		Connections: max(0, f.rig.files/2-spareFiles), Files: f.rig.files,
		Control: f.rig.folder.file("proxy.sock"), Members: f.rig.folder.file("members.yaml"),
	}
	if spec.Front.TLS == scenario.TLSItself {
		f.config.Cert = f.rig.cert()
	}
	if f.proxy.Name == string(scenario.FrontNghttpx) {
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
	return f.run(ctx, f.proxy.Name, testbed.Program{
		Command: append(append([]string{path}, args...), spec.Front.Flags...), Env: spec.Front.Env, Dir: f.rig.folder.path, Cores: spec.Front.Cores,
	})
}

// spareFiles is what a proxy opens beside connections, amply.
const spareFiles = 200

// workers are all that there may be; those are out that get no calls now.
func (f *proxyFront) workers(backends []string) (all []proxies.Worker) {
	for i, w := range f.rig.spec.Workers {
		addr := f.rig.places[i].addr()
		all = append(all, proxies.Worker{
			Name: workerName(i), Addr: addr, Slots: w.Slots, Out: !slices.Contains(backends, addr),
		})
	}
	return all
}

func (f *proxyFront) change(ctx context.Context, backends []string) error {
	f.config.Workers = f.workers(backends)
	return f.proxy.Change(ctx, f.rig.folder.path, f.process.now().PID(), f.config)
}
