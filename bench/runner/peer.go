package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// peer is one proxy that is measured; a new one is a new row here.
type peer struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Config  string `json:"config,omitempty"` // file in bench/peers

	binary  string // name in PATH, or a path
	debian  string // package that has it
	version string // flag that prints its version
	args    func(p peer, at addresses) []string
}

// addresses are where the proxy listens and where the backends are.
type addresses struct {
	listen   string
	backends []string
}

func allPeers() []peer {
	return []peer{
		{Name: "cabrank", version: "--version", args: cabrankArgs},
		{Name: "haproxy-tcp", Config: "haproxy-tcp.cfg", binary: "haproxy", debian: "haproxy", version: "-v", args: haproxyArgs},
		{Name: "nghttpx", Config: "nghttpx.conf", binary: "nghttpx", debian: "nghttp2-proxy", version: "--version", args: nghttpxArgs},
		{Name: "haproxy-h2", Config: "haproxy-h2.cfg", binary: "haproxy", debian: "haproxy", version: "-v", args: haproxyArgs},
	}
}

// Slots are more than any workload has calls in flight, so that nothing waits.
// Probes and metrics stay on, as they are in use; port 0 keeps them apart.
func cabrankArgs(_ peer, at addresses) []string {
	return []string{
		"run", "--listen", at.listen, "--upstream", strings.Join(at.backends, ","), "--slots", "1000",
		"--probes", "127.0.0.1:0", "--metrics", "127.0.0.1:0",
	}
}

func haproxyArgs(p peer, _ addresses) []string { return []string{"-db", "-f", p.Config} }

func nghttpxArgs(p peer, at addresses) []string {
	comma := func(addr string) string { return strings.Replace(addr, ":", ",", 1) }
	args := []string{"--conf=" + p.Config, "--frontend=" + comma(at.listen) + ";no-tls"}
	for _, b := range at.backends {
		args = append(args, "--backend="+comma(b)+";/;proto=h2")
	}
	return args
}

// environment is what HAProxy's configurations refer to, and one thread for Go.
func (at addresses) environment() []string {
	env := []string{"GOMAXPROCS=1", "BENCH_LISTEN=" + at.listen}
	for i, b := range at.backends {
		env = append(env, fmt.Sprintf("BENCH_BACKEND_%d=%s", i+1, b))
	}
	return env
}

// find resolves the binary and the configuration, and asks for the version.
func (p *peer) find(o options) error {
	hint := "install the Debian package " + p.debian
	if p.Name == "cabrank" {
		p.binary, hint = o.cabrank, "run `make build`, or give -cabrank PATH"
	}
	path, err := exec.LookPath(p.binary)
	if err != nil {
		return fmt.Errorf("%s is not here (%w): %s, or leave it out with -peers", p.Name, err, hint)
	}
	p.binary = path
	if p.Config != "" {
		p.Config = filepath.Join(o.root, "bench", "peers", p.Config)
		if _, err := os.Stat(p.Config); err != nil {
			return fmt.Errorf("%w: give the folder of the repository with -root", err)
		}
	}
	out, err := exec.Command(p.binary, p.version).CombinedOutput()
	p.Version, _, _ = strings.Cut(strings.TrimSpace(string(out)), "\n")
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", p.binary, p.version, err, p.Version)
	}
	return nil
}

func (p peer) command(at addresses) []string {
	return append([]string{p.binary}, p.args(p, at)...)
}
