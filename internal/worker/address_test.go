package worker

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

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
		if err != nil || at.address != want {
			t.Fatalf("worker %d: got %q, %v; want %q", number, at.address, err, want)
		}
		if at.metricsPort != 9100+at.index {
			t.Errorf("worker %d: metrics port %d, index %d", number, at.metricsPort, at.index)
		}
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
		if err != nil || away.index != 2 || away.metricsPort != 9102 {
			t.Errorf("%d is taken: index %d, metrics port %d, %v; want 2, 9102", taken, away.index, away.metricsPort, err)
		}
		p.bindable = testPorts(0).bindable
		if home, err := p.claim(0, away.index); err != nil || home.index != 0 || home.metricsPort != 9100 {
			t.Errorf("%d is free again: index %d, metrics port %d, %v; want 0, 9100", taken, home.index, home.metricsPort, err)
		}
		if spare, err := p.claim(5, 2); err != nil || spare.index != 5 {
			t.Errorf("what was left is free: index %d, %v", spare.index, err)
		}
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
			if other, twice := seen[port]; twice {
				t.Fatalf("port %d belongs to workers %d and %d", port, other, number)
			}
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
		if bindable(netip.AddrPortFrom(netip.Addr{}, port)) == nil {
			t.Errorf("%v is said to be free", taken.Addr())
		}
		taken.Close()
	}
}

func TestPortsRunOut(t *testing.T) {
	p := testPorts(1)
	p.start = 65535 - metricsOffset
	p.bindable = func(netip.AddrPort) error { return errors.New("address already in use") }
	if _, err := p.claim(0, 0); err == nil || !strings.Contains(err.Error(), "65435") {
		t.Errorf("got %v, want an error that names the port", err)
	}
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
		if got := test.at.fill(command); !slices.Equal(got, test.want) {
			t.Errorf("%v: got %q, want %q", test.at, got, test.want)
		}
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
	if got := tcp.environ(inherited, options); !slices.Equal(got, want) {
		t.Errorf("tcp: got %q\nwant %q", got, want)
	}
	unix := endpoint{network: "unix", address: "/run/w", metricsPort: 9101, worker: "worker-2", number: 1, slots: 5}
	want = append([]string{
		"PATH=/bin", "PORTAL=x", "RAILS_MAX_THREADS=99",
		"ME=worker-2 at unix:/run/w", "RAILS_MAX_THREADS=98", "SHARD=1 of 4",
		"CABRANK_ADDR=unix:/run/w",
	}, ours...)
	if got := unix.environ(inherited, options); !slices.Equal(got, want) {
		t.Errorf("unix: got %q\nwant %q", got, want)
	}
}
