package worker

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

func testPorts(count int, taken ...int) *ports {
	return &ports{
		host: netip.MustParseAddr("127.0.0.1"), start: 9000, count: count, holder: make(map[int]int),
		bindable: func(addr netip.AddrPort) error {
			if slices.Contains(taken, int(addr.Port())) {
				return errors.New("address already in use")
			}
			return nil
		},
	}
}

// R19: worker i has start+i, metrics 100 above; a taken port moves it to the
// next spare, where it stays.
func TestPortsMoveToSpares(t *testing.T) {
	p := testPorts(3, 9001, 9003)
	for number, want := range []string{"127.0.0.1:9000", "127.0.0.1:9004", "127.0.0.1:9002"} {
		at, err := p.claim(number, number)
		testkit.Need(t, err == nil && at.address == want, "worker %d: got %q, %v; want %q", number, at.address, err, want)
		testkit.Want(t, at.metricsPort == 9100+at.index, "worker %d: metrics port %d, index %d", number, at.metricsPort, at.index)
	}
	if at, err := p.claim(1, 4); err != nil || at.index != 4 {
		t.Errorf("second process: index %d, %v; want 4", at.index, err)
	}
}

// A place has its own ports again as soon as both are free: also that of the metrics
// page is one that scrapers look for.
func TestPortsComeHome(t *testing.T) {
	for _, taken := range []int{9000, 9100} {
		p := testPorts(2, taken)
		away, err := p.claim(0, 0)
		testkit.Want(t, err == nil && away.index == 2 && away.metricsPort == 9102,
			"%d is taken: index %d, metrics port %d, %v; want 2, 9102", taken, away.index, away.metricsPort, err)
		p.bindable = testPorts(0).bindable
		if home, err := p.claim(0, away.index); err != nil || home.index != 0 || home.metricsPort != 9100 {
			t.Errorf("%d is free again: index %d, metrics port %d, %v; want 0, 9100", taken, home.index, home.metricsPort, err)
		}
		spare, err := p.claim(5, 2)
		testkit.Want(t, err == nil && spare.index == 5, "what was left is free: index %d, %v", spare.index, err)
	}
}

// R19: no port is somebody's metrics port.
func TestPortsDoNotCrossMetricsPorts(t *testing.T) {
	p := testPorts(120)
	seen := make(map[int]int)
	for number := range 120 {
		at, err := p.claim(number, number)
		testkit.Must(t, err)
		for _, port := range []int{9000 + at.index, at.metricsPort} {
			other, twice := seen[port]
			testkit.Need(t, !twice, "port %d belongs to workers %d and %d", port, other, number)
			seen[port] = number
		}
	}
}

// A metrics page may listen on any address: whoever has one of them has the port.
func TestBindable(t *testing.T) {
	for _, host := range []string{"127.0.0.1", "127.0.0.2", "0.0.0.0"} {
		taken, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
		testkit.Must(t, err)
		port := taken.Addr().(*net.TCPAddr).AddrPort().Port()
		testkit.Want(t, bindable(netip.AddrPortFrom(netip.Addr{}, port)) != nil, "%v is said to be free", taken.Addr())
		taken.Close()
	}
}

func TestPortsRunOut(t *testing.T) {
	p := testPorts(1)
	p.start = 65535 - metricsOffset
	p.bindable = func(netip.AddrPort) error { return errors.New("address already in use") }
	_, err := p.claim(0, 0)
	testkit.Want(t, err != nil && strings.Contains(err.Error(), "65435"), "got %v, want an error that names the port", err)
}

func TestPlaceFillsCommand(t *testing.T) {
	command := []string{"serve", "--bind={addr}", "{host}", "{port}", "{index}/{worker}", "{slots}", "{threads}", "{metrics_port}", "{other}"}
	for _, test := range []struct {
		at   endpoint
		want []string
	}{
		{endpoint{network: "tcp", address: "127.0.0.1:9001"}, []string{"serve", "--bind=127.0.0.1:9001", "127.0.0.1", "9001", "1/worker-2", "5", "15", "9101", "{other}"}},
		{endpoint{network: "tcp", address: "[::1]:9001"}, []string{"serve", "--bind=[::1]:9001", "::1", "9001", "1/worker-2", "5", "15", "9101", "{other}"}},
		{endpoint{network: "unix", address: "/run/w"}, []string{"serve", "--bind=unix:/run/w", "", "", "1/worker-2", "5", "15", "9101", "{other}"}},
	} {
		test.at.worker, test.at.number, test.at.slots, test.at.metricsPort = "worker-2", 1, 5, 9101
		testkit.EqualList(t, test.at.fill(command), test.want, "%v", test.at)
	}
}

// What is configured comes after what is inherited, ours after both; with unix
// nothing says PORT.
func TestPlaceEnvironment(t *testing.T) {
	inherited := []string{"PATH=/bin", "PORT=8080", "PORTAL=x", "RAILS_MAX_THREADS=99"}
	options := &Options{Settings: Settings{Slots: Amount{N: 5}, MetricsPath: "/metrics", Env: map[string]string{
		"SHARD": "{index} of 4", "ME": "{worker} at {addr}", "RAILS_MAX_THREADS": "98", "PORT": "1",
	}}}
	ours := []string{
		"CABRANK_WORKER=worker-2", "CABRANK_WORKER_INDEX=1", "CABRANK_SLOTS=5", "CABRANK_THREADS=15", "PROMETHEUS_EXPORTER_PORT=9101",
		"PROMETHEUS_EXPORTER_PATH=/metrics", "RAILS_MAX_THREADS=15",
	}
	tcp := endpoint{network: "tcp", address: "127.0.0.1:9001", metricsPort: 9101, worker: "worker-2", number: 1, slots: 5}
	want := append([]string{
		"PATH=/bin", "PORT=8080", "PORTAL=x", "RAILS_MAX_THREADS=99",
		"ME=worker-2 at 127.0.0.1:9001", "PORT=1", "RAILS_MAX_THREADS=98", "SHARD=1 of 4",
		"PORT=9001", "CABRANK_ADDR=127.0.0.1:9001",
	}, ours...)
	testkit.EqualList(t, tcp.environ(inherited, options), want, "tcp")
	unix := endpoint{network: "unix", address: "/run/w", metricsPort: 9101, worker: "worker-2", number: 1, slots: 5}
	want = append([]string{
		"PATH=/bin", "PORTAL=x", "RAILS_MAX_THREADS=99",
		"ME=worker-2 at unix:/run/w", "RAILS_MAX_THREADS=98", "SHARD=1 of 4",
		"CABRANK_ADDR=unix:/run/w",
	}, ours...)
	testkit.EqualList(t, unix.environ(inherited, options), want, "unix")
}

// shortTemp is a folder whose path leaves room for socket names.
func shortTemp(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "w") //nolint:usetesting // t.TempDir is too long for a socket's path
	testkit.Must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func openSocketDir(t *testing.T, base string) *socketDir {
	t.Helper()
	metrics := testPorts(2)
	metrics.start, metrics.alone = 9100, true
	d := &socketDir{base: base, metrics: metrics}
	testkit.Must(t, d.open())
	t.Cleanup(d.close)
	return d
}

// R19: only this user enters the directory; a stale socket is removed; nothing
// is left after close.
func TestSocketDirLifeCycle(t *testing.T) {
	d := openSocketDir(t, shortTemp(t))
	info, err := os.Stat(d.path)
	testkit.Need(t, err == nil && info.Mode().Perm() == 0o700, "mode %v, %v; want 0700", info.Mode(), err)
	stale := filepath.Join(d.path, "worker-2.sock")
	testkit.Must(t, os.WriteFile(stale, nil, 0o600))
	at, err := d.claim(1, 1)
	testkit.Want(t, err == nil && at.address == stale && at.target() == "unix:"+stale && at.metricsPort == 9101, "got %+v, %v", at, err)
	_, err = os.Stat(stale)
	testkit.Want(t, os.IsNotExist(err), "stale socket is still there: %v", err)
	d.close()
	_, err = os.Stat(d.path)
	testkit.Want(t, os.IsNotExist(err), "directory is still there: %v", err)
}

// R20: while the workers of another cabrank have the metrics ports, ours get
// others, and keep them.
func TestSocketDirMetricsPorts(t *testing.T) {
	d := openSocketDir(t, shortTemp(t))
	d.metrics = testPorts(2, 9100, 9101)
	d.metrics.start, d.metrics.alone = 9100, true
	for number, want := range []int{9102, 9103} {
		at, err := d.claim(number, number)
		testkit.Need(t, err == nil && at.metricsPort == want, "worker %d: %+v, %v; want metrics port %d", number, at, err, want)
		again, err := d.claim(number, at.index)
		testkit.Want(t, err == nil && again == at, "second process: %+v, %v; want %+v", again, err, at)
	}
}

// R19: a start removes what dead predecessors left, and nothing of the living,
// of beginners, or of others.
func TestSocketDirSweepsTheDeadOnly(t *testing.T) {
	base := shortTemp(t)
	living := openSocketDir(t, base)
	create := func(name string, age time.Duration, lock bool) string {
		path := filepath.Join(base, name)
		testkit.Must(t, os.Mkdir(path, 0o700))
		if lock {
			testkit.Must(t, os.WriteFile(filepath.Join(path, lockName), nil, 0o600))
		}
		when := time.Now().Add(-age)
		testkit.Must(t, os.Chtimes(path, when, when))
		return path
	}
	gone := []string{create("cabrank-dead", 0, true), create("cabrank-old", time.Hour, false)}
	backup := create("cabrank-backup", time.Hour, true) // somebody's own folder
	testkit.Must(t, os.WriteFile(filepath.Join(backup, "notes.txt"), nil, 0o600))
	kept := []string{living.path, backup, create("cabrank-new", 0, false), create("other", time.Hour, true)}
	openSocketDir(t, base)
	for _, path := range gone {
		_, err := os.Stat(path)
		testkit.Want(t, os.IsNotExist(err), "%s is still there: %v", path, err)
	}
	for _, path := range kept {
		_, err := os.Stat(path)
		testkit.Want(t, err == nil, "%s: %v", path, err)
	}
}

func TestRuntimeDirPrefersXDG(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", dir)
	testkit.Equal(t, runtimeDir(), dir, "the folder")
	t.Chdir(dir)
	for _, none := range []string{"", ".", filepath.Join(dir, "missing")} { // a relative one counts as none
		t.Setenv("XDG_RUNTIME_DIR", none)
		testkit.Equal(t, runtimeDir(), os.TempDir(), "%q", none)
	}
}

// R19: a path that does not fit into a socket address is refused by name. Who cannot make
// sockets is told what else there is.
func TestSocketDirThatCannotBe(t *testing.T) {
	for base, want := range map[string]string{
		filepath.Join(shortTemp(t), strings.Repeat("x", 80)): "100 are allowed",
		filepath.Join(t.TempDir(), "missing"):                "no such file or directory: set XDG_RUNTIME_DIR or TMPDIR to a folder that may be written, or use transport tcp",
	} {
		err := (&socketDir{base: base}).open()
		testkit.Want(t, err != nil && strings.Contains(err.Error(), base) && strings.Contains(err.Error(), want),
			"got %v, want %s", err, want)
	}
}
