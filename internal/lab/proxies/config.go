package proxies

import (
	"embed"
	"fmt"
	"strings"
	"text/template"
)

//go:embed files
var files embed.FS

// Config is what the configuration of a proxy depends on.
type Config struct {
	Listen  string // host:port
	Workers []Worker
	// Policy is how it chooses a worker, in its own words; empty: as it does when
	// nothing is said.
	Policy  string
	Threads int // that move calls; 0: 1
	// Queue has a proxy that can give a worker no more calls than it has slots, and
	// keep the others.
	Queue bool
	// Checks has those that can try once a second whether workers take connections.
	Checks bool
	// Connections is how many it may have, Files how many files; 0: 12,000 and 20,000.
	Connections, Files int
	// Control is a unix socket, or for nghttpx host:port, by which it is told of workers
	// that come and go; Members is a file with the same meaning. Empty: they do not.
	Control, Members string
}

// Worker is where calls may go.
type Worker struct {
	Name  string // a word
	Addr  string // host:port
	Slots int
	Out   bool // it gets none now
}

// Host and Port are the parts of its address.
func (w Worker) Host() string { return host(w.Addr) }

// Port is text: it may be a place that somebody fills in.
func (w Worker) Port() string { return port(w.Addr) }

// Host and Port are the parts of where callers come in.
func (c Config) Host() string { return host(c.Listen) }

// Port is text as that of a worker.
func (c Config) Port() string { return port(c.Listen) }

func host(addr string) string {
	return addr[:strings.LastIndexByte(addr, ':')]
}

func port(addr string) string {
	return addr[strings.LastIndexByte(addr, ':')+1:]
}

// complete fills in what was not said.
func (c Config) complete() Config {
	if c.Threads == 0 {
		c.Threads = 1
	}
	if c.Connections == 0 {
		c.Connections = 12_000
	}
	if c.Files == 0 {
		c.Files = 20_000
	}
	return c
}

// strange reports whether a policy could be more than that in a configuration.
func strange(r rune) bool {
	return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-(), $", r)
}

// render fills in a file.
func render(name string, c Config) (string, error) {
	if strings.ContainsFunc(c.Policy, strange) {
		return "", fmt.Errorf("policy %q: want words such as roundrobin, ROUND_ROBIN or least_conn", c.Policy)
	}
	t, err := template.New(name).ParseFS(files, "files/"+name)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	if err := t.Execute(&text, c.complete()); err != nil {
		return "", err
	}
	return text.String(), nil
}
