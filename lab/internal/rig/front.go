package rig

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/cabrank/cabrank/internal/testkit/certificate"
	"github.com/cabrank/cabrank/internal/testkit/nameserver"
	"github.com/cabrank/cabrank/internal/testkit/ports"
	"github.com/cabrank/cabrank/lab/internal/proxies"
	"github.com/cabrank/cabrank/lab/internal/result"
	"github.com/cabrank/cabrank/lab/internal/scenario"
	"github.com/cabrank/cabrank/lab/internal/testbed"
)

// front is what callers call, and what knows the workers.
type front interface {
	// start has it answer, with workers behind it at these addresses.
	start(ctx context.Context, backends []string) error
	// target is what callers dial.
	target() string
	// change says which workers there are from now on.
	change(ctx context.Context, backends []string) error
	// usage is what its processes have used, and the workers that it has started.
	usage() []result.Process
	// stop ends it. It is called once, also if start has failed.
	stop()
}

func newFront(r *Rig) front {
	b := base{rig: r}
	switch kind := r.spec.Front.Kind; kind {
	case scenario.FrontNone:
		return &noFront{b}
	case scenario.FrontDNS:
		return &nameFront{base: b}
	case scenario.FrontDNAT:
		return &serviceFront{b}
	case scenario.FrontCabrank:
		return &cabrankFront{base: b, config: r.file("cabrank.yml"), socket: r.file("cabrank.sock")}
	default:
		proxy, _ := proxies.Find(string(kind))
		return &proxyFront{base: b, proxy: proxy}
	}
}

type base struct {
	rig     *Rig
	process *process // nil if there is none
}

func (b *base) target() string { return b.rig.listen.addr() }

func (b *base) usage() []result.Process {
	if b.process == nil {
		return nil
	}
	return []result.Process{b.process.usage()}
}

func (b *base) stop() {
	if b.process != nil {
		b.process.stop()
	}
}

// run starts the process of a front and waits until it answers.
func (b *base) run(ctx context.Context, name string, program testbed.Program) (err error) {
	if b.process, err = b.rig.process("front", name, "front", b.rig.spec.Front.CPU, program); err != nil {
		return err
	}
	if b.rig.spec.Front.TLS == scenario.TLSItself {
		return b.process.begin(ctx, byConnection, b.target())
	}
	return b.process.begin(ctx, byCall, b.target())
}

// noFront is none: callers call the first worker.
type noFront struct{ base }

func (f *noFront) start(context.Context, []string) error { return nil }
func (f *noFront) target() string                        { return f.rig.places[0].addr() }

func (f *noFront) change(context.Context, []string) error {
	return fmt.Errorf("without a front nobody is told of workers that come and go")
}

const serviceName = "workers.lab"

// nameFront is a name server, as a cluster has for a Service without an address.
type nameFront struct {
	base
	zone *nameserver.Zone
}

func (f *nameFront) start(_ context.Context, backends []string) (err error) {
	f.zone, err = nameserver.ServeZone(f.records(backends)...)
	return err
}

func (f *nameFront) change(_ context.Context, backends []string) error {
	f.zone.Say(f.records(backends)...)
	return nil
}

// records are those of the name, as a zone file has them.
func (f *nameFront) records(backends []string) (lines []string) {
	ttl := cmp.Or(f.rig.spec.Front.TTL, time.Second)
	for _, at := range f.rig.places {
		if slices.Contains(backends, at.addr()) {
			lines = append(lines, fmt.Sprintf("%s. %.0f IN A %s", serviceName, ttl.Truncate(time.Second).Seconds(), at.host))
		}
	}
	return lines
}

func (f *nameFront) target() string {
	return fmt.Sprintf("dns://%s/%s:%d", f.zone.Addr, serviceName, f.rig.places[0].port)
}

func (f *nameFront) stop() {
	if f.zone != nil {
		f.zone.Close()
	}
}

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
		Control: f.rig.file("proxy.sock"),
	}
	if spec.Front.TLS == scenario.TLSItself {
		f.config.Cert = f.rig.cert()
	}
	args, err := f.proxy.Write(f.rig.folder, f.config)
	if err != nil {
		return err
	}
	return f.run(ctx, f.proxy.Name, testbed.Program{
		Command: append(append([]string{path}, args...), spec.Front.Flags...), Env: spec.Front.Env, Dir: f.rig.folder, Cores: spec.Front.Cores,
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
	return f.proxy.Change(ctx, f.config)
}

// serviceFront is the address of a Service, behind which the kernel chooses.
type serviceFront struct{ base }

func (f *serviceFront) start(ctx context.Context, backends []string) error {
	return f.change(ctx, backends)
}

// change is about new connections: those that there are stay where they are.
func (f *serviceFront) change(_ context.Context, backends []string) error {
	plan := testbed.PodPlan{Port: uint16(f.rig.listen.port)}
	for _, addr := range backends {
		pod, err := netip.ParseAddrPort(addr)
		if err != nil {
			return err
		}
		plan.Pods = append(plan.Pods, pod.Addr())
	}
	return f.rig.pods.Set(plan)
}

// openPods makes the network in which all of the arm runs. Where that is not allowed a
// proxy that balances connections takes the place of the kernel, which is said.
func (r *Rig) openPods() {
	pods, err := testbed.StartPods([]string{r.spec.Programs.Lab, PodsCommand})
	if err == nil {
		r.pods = pods
		return
	}
	r.notes = append(r.notes, fmt.Sprintf("no random DNAT as kube-proxy has it: %v. HAProxy balances connections in its place", err))
	r.spec.Front.Kind = scenario.FrontHAProxyTCP
}

// PodsCommand is the word behind `cabrank-lab` that has it call ServePods.
const PodsCommand = "pods"

// ServePods is the body of the process that holds the network of an arm with DNAT.
func ServePods(in io.ReadCloser, out io.WriteCloser) error { return testbed.ServePods(in, out, ask) }

// aside starts a process that is neither worker nor front, at a port of its own.
func (r *Rig) aside(ctx context.Context, at *place, role, name, group string, made func() (testbed.Program, error)) error {
	port, err := ports.Free(1)
	if err != nil {
		return err
	}
	*at = place{"127.0.0.1", port}
	program, err := made()
	if err != nil {
		return err
	}
	p, err := r.process(role, name, group, 0, program)
	if err != nil {
		return err
	}
	r.others = append(r.others, p)
	return p.begin(ctx, byConnection, at.addr())
}

// startGateway starts the program that makes the calls for callers who speak HTTP to it, if
// there is one, behind the front. It runs where callers do: fronts and workers see it as
// their caller. Whether it works is for its callers to ask.
func (r *Rig) startGateway(ctx context.Context) error {
	g := r.spec.Gateway
	if len(g.Command) == 0 {
		return nil
	}
	return r.aside(ctx, &r.gatewayAt, "gateway", "the gateway", "gateway", func() (testbed.Program, error) {
		at := r.gatewayAt
		command, env := filled(g.Command, g.Env, "{target}", r.front.target(), "{addr}", at.addr(), "{host}", at.host, "{port}", strconv.Itoa(at.port))
		return testbed.Program{Command: command, Env: append(env, "PORT="+strconv.Itoa(at.port)), Dir: g.Dir}, nil
	})
}

// cert is the file with the certificate of an arm, and its key.
func (r *Rig) cert() string { return r.file("cert.pem") }

func (r *Rig) makeCert() error {
	cert, key, err := certificate.Make("bench.example", time.Now().Add(24*time.Hour))
	if err != nil {
		return err
	}
	return os.WriteFile(r.cert(), append(cert, key...), 0o600)
}

// startTLS starts who ends TLS before the front.
func (r *Rig) startTLS(ctx context.Context) error {
	return r.aside(ctx, &r.tlsAt, "front 2", "HAProxy before the front", "front-tls", func() (p testbed.Program, err error) {
		proxy, _ := proxies.Find(string(scenario.FrontHAProxyTCP))
		path, err := proxy.Look()
		if err != nil {
			return p, err
		}
		args, err := proxy.Write(r.folder, proxies.Config{
			Listen: r.tlsAt.addr(), Workers: []proxies.Worker{{Name: "front", Addr: r.front.target()}},
			Connections: max(0, r.files/2-spareFiles), Files: r.files, Cert: r.cert(),
		})
		return testbed.Program{Command: append([]string{path}, args...), Dir: r.folder, Cores: r.spec.Front.Cores}, err
	})
}
