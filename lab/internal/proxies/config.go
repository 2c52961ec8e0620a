package proxies

import (
	"embed"
	"fmt"
	"strconv"
	"strings"
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

// render fills in a file. What it depends on is in marks, not in a template engine:
// those call methods by name, and with one the linker keeps the methods of everything.
//
//	{{name}}    a value
//	?name|line  there if the value is not empty, !name|line if it is
//	*|line      once for each worker, with values of its own
func render(name string, c Config) (string, error) {
	if strings.ContainsFunc(c.Policy, strange) {
		return "", fmt.Errorf("policy %q: want words such as roundrobin, ROUND_ROBIN or least_conn", c.Policy)
	}
	file, err := files.ReadFile("files/" + name)
	if err != nil {
		return "", err
	}
	c = c.complete()
	values := c.values()
	var text strings.Builder
	for line := range strings.Lines(string(file)) {
		line, each := strings.CutPrefix(line, "*")
		line, there := marked(line, values)
		switch {
		case !there:
		case each:
			for _, w := range c.Workers {
				text.WriteString(fill(line, w.values(c)))
			}
		default:
			text.WriteString(fill(line, values))
		}
	}
	return text.String(), nil
}

// marked cuts the mark from a line that depends on a value, and says whether it is there.
func marked(line string, values map[string]string) (rest string, there bool) {
	mark, rest, found := strings.Cut(line, "|")
	switch {
	case !found || strings.ContainsAny(mark, " \t{"): // the bar is of the line itself
		return line, true
	case mark == "":
		return rest, true
	case mark[0] == '?':
		return rest, values[mark[1:]] != ""
	case mark[0] == '!':
		return rest, values[mark[1:]] == ""
	}
	return line, true
}

func fill(line string, values map[string]string) string {
	var pairs []string
	for name, value := range values {
		pairs = append(pairs, "{{"+name+"}}", value)
	}
	return strings.NewReplacer(pairs...).Replace(line)
}

// values are those of the marks.
func (c Config) values() map[string]string {
	return map[string]string{
		"listen": c.Listen, "host": host(c.Listen), "port": port(c.Listen), "policy": c.Policy,
		"threads": strconv.Itoa(c.Threads), "connections": strconv.Itoa(c.Connections), "files": strconv.Itoa(c.Files),
		"queue": word(c.Queue, "yes"), "checks": word(c.Checks, "yes"), "control": c.Control, "members": c.Members,
	}
}

func (w Worker) values(c Config) map[string]string {
	return map[string]string{
		"name": w.Name, "addr": w.Addr, "host": host(w.Addr), "port": port(w.Addr),
		"maxconn": word(c.Queue, fmt.Sprintf(" maxconn %d", w.Slots)), "check": word(c.Checks, " check inter 1s"),
		"disabled": word(w.Out, " disabled"), "down": word(w.Out, " down"),
	}
}

// word is a text, or nothing.
func word(there bool, text string) string {
	if there {
		return text
	}
	return ""
}
