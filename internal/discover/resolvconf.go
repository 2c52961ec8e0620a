package discover

import (
	"net"
	"os"
	"sync"
	"time"

	"github.com/miekg/dns"
)

const (
	// The bounds of resolv.conf(5) for the patience with one server, and for the
	// number of rounds through all of them. What a file says beyond counts as them.
	maxPatience = 30 * time.Second
	maxRounds   = 5
	// maxServers bounds the name servers that are asked in turn.
	maxServers = 16
	dnsPort    = "53"
)

// settings are how to ask, as resolv.conf says.
type settings struct {
	servers  []string // "host:port"
	search   *dns.ClientConfig
	patience time.Duration // with one server
	rounds   int           // through all of them
}

// resolvConf is the file, read again whenever it has changed. Containers and
// laptops change it under a process.
//
// Concurrency: read may be called from anywhere.
type resolvConf struct {
	path    string
	servers []string // go before those of the file, if there are any

	mu    sync.Mutex // guards what follows
	known *settings  // nil before the first read
	size  int64
	at    time.Time // modification of what is known
}

// read returns the settings that hold now. A file that is not there says
// nothing, and one that cannot be read any more goes on to hold.
func (c *resolvConf) read() settings {
	c.mu.Lock()
	defer c.mu.Unlock()
	info, err := os.Stat(c.path)
	if err == nil && (c.known == nil || !info.ModTime().Equal(c.at) || info.Size() != c.size) {
		if parsed, err := dns.ClientConfigFromFile(c.path); err == nil {
			c.known, c.at, c.size = c.settle(parsed), info.ModTime(), info.Size()
		}
	}
	if c.known == nil {
		// The defaults of the manual page.
		return *c.settle(&dns.ClientConfig{Ndots: 1, Timeout: 5, Attempts: 2})
	}
	return *c.known
}

// settle bounds what a file says and adds what it leaves out.
func (c *resolvConf) settle(file *dns.ClientConfig) *settings {
	s := &settings{
		search:   file,
		patience: min(time.Duration(file.Timeout)*time.Second, maxPatience),
		rounds:   min(file.Attempts, maxRounds),
	}
	named := c.servers
	if len(named) == 0 {
		named = file.Servers
	}
	if len(named) == 0 {
		named = []string{"127.0.0.1"} // as resolv.conf(5) has it
	}
	for _, server := range named[:min(len(named), maxServers)] {
		s.servers = append(s.servers, withPort(server))
	}
	return s
}

// withPort adds the port of DNS to an address without one.
func withPort(server string) string {
	if _, _, err := net.SplitHostPort(server); err == nil {
		return server
	}
	return net.JoinHostPort(server, dnsPort)
}
