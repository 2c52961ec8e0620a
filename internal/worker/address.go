package worker

import (
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// endpoint is where one process of a worker listens.
type endpoint struct {
	index       int    // 0 for worker-1's own; from Count + MaxSurge on they are spares
	network     string // "tcp" or "unix"
	address     string // as net.Dial takes it
	metricsPort int
	metricsPath string // socket of the metrics page, with unix only

	// About its worker; set by worker.claimEndpoint.
	worker string // "worker-1"
	number int    // 0 for worker-1, whatever its address
	slots  int    // calls that it may have at a time
}

// target is the address as gRPC servers and clients write it: the value of {addr}
// and CABRANK_ADDR.
func (p endpoint) target() string {
	if p.network == "unix" {
		return "unix:" + p.address
	}
	return p.address
}

// told is the address with the names by which the worker was told of it, for people.
func (p endpoint) told() string {
	if p.network == "unix" {
		return p.address + ", which CABRANK_ADDR and {addr} name"
	}
	return p.address + ", which CABRANK_ADDR, PORT and {addr} name"
}

// hostPort returns the parts of a tcp address, empty strings for unix.
func (p endpoint) hostPort() (host, port string) {
	if p.network == "unix" {
		return "", ""
	}
	// It cannot fail: the address is made by JoinHostPort.
	host, port, _ = net.SplitHostPort(p.address)
	return host, port
}

// ThreadsFor returns how many threads a worker should have for a number of slots. A
// thread is back in its pool a moment after its answer, and the next call comes before
// that. With twice as many threads as slots a worker refused a few of 20,000 short calls
// that compute, with three times as many none (docs/workers.md, "Threads and slots").
func ThreadsFor(slots int) int { return 3 * slots }

// fill returns the texts with {addr}, {host}, {port}, {index}, {worker}, {slots},
// {threads} and {metrics_port} replaced.
func (p endpoint) fill(texts []string) []string {
	host, port := p.hostPort()
	replacer := strings.NewReplacer("{addr}", p.target(), "{host}", host, "{port}", port,
		"{index}", strconv.Itoa(p.number), "{worker}", p.worker, "{slots}", strconv.Itoa(p.slots),
		"{threads}", strconv.Itoa(ThreadsFor(p.slots)), "{metrics_port}", strconv.Itoa(p.metricsPort))
	filled := make([]string, len(texts))
	for i, text := range texts {
		filled[i] = replacer.Replace(text)
	}
	return filled
}

// environ returns the environment of a worker: inherited variables, then configured
// ones, then those of cabrank, because the last of equal names counts (os/exec).
func (p endpoint) environ(inherited []string, o *Options) []string {
	env := make([]string, 0, len(inherited)+len(o.Env)+8)
	for _, entry := range append(slices.Clip(inherited), p.configured(o.Env)...) {
		// With unix the worker has no port, and an inherited PORT is most likely for
		// cabrank itself.
		if p.network == "unix" && strings.HasPrefix(entry, "PORT=") {
			continue
		}
		env = append(env, entry)
	}
	if _, port := p.hostPort(); port != "" {
		env = append(env, "PORT="+port)
	}
	if p.metricsPath != "" {
		env = append(env, "CABRANK_METRICS_SOCKET="+p.metricsPath)
	}
	return append(env,
		"CABRANK_ADDR="+p.target(),
		"CABRANK_WORKER="+p.worker,
		"CABRANK_WORKER_INDEX="+strconv.Itoa(p.number),
		"CABRANK_SLOTS="+strconv.Itoa(p.slots),
		"CABRANK_THREADS="+strconv.Itoa(ThreadsFor(p.slots)),
		"PROMETHEUS_EXPORTER_PORT="+strconv.Itoa(p.metricsPort),
		"PROMETHEUS_EXPORTER_PATH="+o.MetricsPath,
		"RAILS_MAX_THREADS="+strconv.Itoa(ThreadsFor(o.Slots.N)),
	)
}

// configured returns the entries of Settings.Env, filled in, in the order
// of their names.
func (p endpoint) configured(environment map[string]string) []string {
	names := slices.Sorted(maps.Keys(environment))
	entries := make([]string, len(names))
	for i, name := range names {
		entries[i] = name + "=" + p.fill([]string{environment[name]})[0]
	}
	return entries
}

// addresses hands out addresses to listen at (R19). claim returns the one for the next
// process of worker number (0 for worker-1), which had index current until now.
//
// claim may be called from several goroutines; open comes before, close after.
type addresses interface {
	open() error
	claim(number, current int) (endpoint, error)
	inUse() []int      // both ports of each worker
	avoid(ports []int) // replaces the ports of the last call
	close()
}

func newAddresses(o *Options) addresses {
	host := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	at := &ports{host: host, start: o.StartPort, count: o.Count.N + o.MaxSurge, holder: make(map[int]int), bindable: bindable}
	if o.Transport == "unix" {
		at.start, at.alone = o.StartPort+metricsOffset, true
		return &socketDir{base: runtimeDir(), metrics: at}
	}
	return at
}

// runtimeDir is the folder for files that live as long as this process.
func runtimeDir() string {
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) { // by its specification a relative path does not count
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			return dir
		}
	}
	return os.TempDir()
}

// bindable tells whether a worker could listen on addr now, with the zero Addr on
// all addresses of the machine.
func bindable(addr netip.AddrPort) error {
	listener, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(addr))
	if err != nil {
		return err
	}
	if err := listener.Close(); err != nil {
		return fmt.Errorf("close after trying %v: %w", addr, err)
	}
	return nil
}
