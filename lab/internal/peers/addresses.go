package peers

import (
	"fmt"
	"net"
	"path/filepath"
	"strings"
)

// addresses are where the proxy listens and where the backends are: host:port
// or, of backends, unix:/path.
type addresses struct {
	listen   string
	backends []string
	worker   []string // the command of a worker, for a proxy that starts them
}

// addressesFor finds ports that are free now; sockets are files in dir.
func addressesFor(p peer, dir string) (at addresses, err error) {
	ports, err := freeAddresses(backends + 1)
	if err != nil {
		return at, err
	}
	at = addresses{listen: ports[0], backends: ports[1:]}
	if p.sockets {
		for i := range at.backends {
			at.backends[i] = fmt.Sprintf("unix:%s", filepath.Join(dir, fmt.Sprintf("backend%d.sock", i+1)))
		}
	}
	return at, nil
}

// environment is what configurations refer to.
func (at addresses) environment() []string {
	env := []string{"BENCH_LISTEN=" + at.listen}
	for i, b := range at.backends {
		env = append(env, fmt.Sprintf("BENCH_BACKEND_%d=%s", i+1, b))
	}
	return env
}

// fill puts the addresses into a configuration of a program that cannot read
// the environment: ${BENCH_LISTEN}, and ${BENCH_LISTEN_HOST} or _PORT.
func (at addresses) fill(text string) string {
	var pairs []string
	for _, setting := range at.environment() {
		name, addr, _ := strings.Cut(setting, "=")
		host, port, _ := strings.Cut(addr, ":")
		pairs = append(pairs, "${"+name+"}", addr, "${"+name+"_HOST}", host, "${"+name+"_PORT}", port)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// freeAddresses finds loopback ports that are free now. All are taken before
// the first is given back, so that they differ.
func freeAddresses(n int) (addrs []string, err error) {
	var taken []net.Listener
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		taken = append(taken, l)
		addrs = append(addrs, l.Addr().String())
	}
	for _, l := range taken {
		l.Close()
	}
	return addrs, nil
}
