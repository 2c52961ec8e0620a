package proxies

import (
	"cmp"
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
