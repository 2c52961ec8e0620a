package discover

import (
	"bufio"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// The bounds of resolv.conf(5) for the patience with one server, and for the
	// number of rounds through all of them. Larger values in a file count as these.
	maxPatience = 30 * time.Second
	maxRounds   = 5
	// maxServers bounds the name servers that are asked in turn.
	maxServers = 16
	// maxDots bounds ndots, as resolv.conf(5) has it.
	maxDots = 15
	// maxConf bounds the file: the rest is not read.
	maxConf = 64 << 10
	dnsPort = "53"
)

// settings are how to ask, as resolv.conf says.
type settings struct {
	servers  []string // "host:port"
	search   []string
	ndots    int           // a name with fewer dots is first looked for below search
	patience time.Duration // with one server
	rounds   int           // through all of them
}

// defaults are those of the manual page.
func defaults() settings {
	return settings{ndots: 1, patience: 5 * time.Second, rounds: 2}
}

// resolvConf is the file, read again whenever it has changed. Containers and
// laptops change it under a process.
//
// Concurrency: read may be called from anywhere.
type resolvConf struct {
	path    string
	servers []string // used in place of those of the file, unless empty

	mu    sync.Mutex // guards the fields below
	known *settings  // nil before the first read
	size  int64
	at    time.Time // modification time of the known file
}

// read returns the present settings. Without a file they are the defaults; if the file
// cannot be read any more, its last content counts.
func (c *resolvConf) read() settings {
	c.mu.Lock()
	defer c.mu.Unlock()
	info, err := os.Stat(c.path)
	if err == nil && (c.known == nil || !info.ModTime().Equal(c.at) || info.Size() != c.size) {
		if parsed, err := readConf(c.path); err == nil {
			c.known, c.at, c.size = c.complete(parsed), info.ModTime(), info.Size()
		}
	}
	if c.known == nil {
		return *c.complete(defaults())
	}
	return *c.known
}

// complete bounds the servers of a file and adds a default.
func (c *resolvConf) complete(s settings) *settings {
	named := c.servers
	if len(named) == 0 {
		named = s.servers
	}
	if len(named) == 0 {
		named = []string{"127.0.0.1"} // as resolv.conf(5) has it
	}
	s.servers = nil
	for _, server := range named[:min(len(named), maxServers)] {
		s.servers = append(s.servers, withPort(server))
	}
	return &s
}

// readConf reads a file by resolv.conf(5). Unknown lines are skipped, as resolvers do.
func readConf(path string) (settings, error) {
	file, err := os.Open(path)
	if err != nil {
		return settings{}, err
	}
	defer file.Close()
	s := defaults()
	lines := bufio.NewScanner(io.LimitReader(file, maxConf))
	for lines.Scan() {
		s.take(strings.Fields(lines.Text()))
	}
	return s, lines.Err()
}

// take takes in one line. Of several search lists the last counts.
func (s *settings) take(words []string) {
	if len(words) == 0 {
		return
	}
	switch rest := words[1:]; words[0] {
	case "nameserver":
		s.servers = append(s.servers, rest[:min(len(rest), 1)]...)
	case "domain":
		s.search = rest[:min(len(rest), 1)]
	case "search":
		s.search = rest
	case "options":
		for _, option := range rest {
			s.option(option)
		}
	}
}

func (s *settings) option(text string) {
	name, value, _ := strings.Cut(text, ":")
	n, _ := strconv.Atoi(value) // text that is not a number counts as the least value
	switch {
	case value == "":
	case name == "ndots":
		s.ndots = min(max(n, 0), maxDots)
	case name == "timeout":
		s.patience = time.Duration(min(max(n, 1), int(maxPatience/time.Second))) * time.Second
	case name == "attempts":
		s.rounds = min(max(n, 1), maxRounds)
	}
}

// names returns the full names to try for a name, in order.
func (s *settings) names(name string) []string {
	if strings.HasSuffix(name, ".") {
		return []string{name}
	}
	alone := name + "."
	var below []string
	for _, suffix := range s.search {
		below = append(below, alone+strings.TrimSuffix(suffix, ".")+".")
	}
	if strings.Count(name, ".") >= s.ndots {
		return append([]string{alone}, below...)
	}
	return append(below, alone)
}

// withPort adds the port of DNS to an address without one.
func withPort(server string) string {
	if _, _, err := net.SplitHostPort(server); err == nil {
		return server
	}
	return net.JoinHostPort(server, dnsPort)
}
