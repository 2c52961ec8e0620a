package testbed

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/procfs"

	"github.com/cabrank/cabrank/internal/testkit"
)

func TestReadLimits(t *testing.T) {
	dir := t.TempDir()
	proc, err := procfs.NewFS(dir)
	testkit.Must(t, err)
	testkit.Equal(t, limitsOf(proc, 0), (Limits{}), "nothing known")
	for name, text := range map[string]string{"ipv4/ip_local_port_range": "32768\t60999\n", "core/somaxconn": "4096\n"} {
		path := filepath.Join(dir, "sys", "net", name)
		testkit.Must(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)))
	}
	testkit.Equal(t, limitsOf(proc, 20000), Limits{20000, 28232, 4096}, "the limits")
}

func TestLimitsRefuse(t *testing.T) {
	l := Limits{Files: 20000, Ports: 28232, Backlog: 4096}
	for _, tc := range []struct {
		name   string
		demand Demand
		want   string
	}{
		{"enough", Demand{Connections: 15000, AtOnce: 4096, Generators: 2, Listeners: 1}, ""},
		{"files of a generator", Demand{Connections: 30000, Generators: 1, Listeners: 2}, "30000 connections need 30100 open files in one process, 20000 are allowed (ulimit -n)"},
		{"files of a worker", Demand{Connections: 30000, Generators: 4, Listeners: 1}, "need 30100 open files"},
		{"files of a proxy", Demand{Connections: 10000, Generators: 4, Listeners: 1, Through: true}, "need 20100 open files"},
		{"ports", Demand{Connections: 60000, Generators: 10, Listeners: 1}, "60100 open files"},
		{"backlog", Demand{Connections: 5000, AtOnce: 5000, Generators: 1, Listeners: 1}, "5000 connections at once to one address, where 4096 may wait to be accepted"},
		{"backlogs", Demand{Connections: 9000, AtOnce: 9000, Generators: 1, Listeners: 3}, ""},
		{"nothing", Demand{}, ""},
	} {
		if got := l.Refuse(tc.demand); got != tc.want && (tc.want == "" || !strings.Contains(got, tc.want)) {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
	testkit.Says(t, (Limits{Ports: 100}).Refuse(Demand{Connections: 201, Listeners: 2}), "101 connections to one address")
	testkit.Equal(t, (Limits{}).Refuse(Demand{Connections: 1 << 20, AtOnce: 1 << 20}), "", "nothing known")
}

// What this process burns is not noise.
func TestNoise(t *testing.T) {
	began := time.Now()
	busy, before, known := usedByAll()
	if !known {
		t.Skip("this machine tells nothing of who uses it")
	}
	noise, own := StartNoise(), before
	for time.Since(began) < 200*time.Millisecond || own-before < 100*time.Millisecond {
		_, own, _ = usedByAll()
	}
	machine := ThisMachine().Cores
	cores := noise()
	testkit.Want(t, cores >= 0 && cores <= float64(machine), "noise %v, own %v", cores, own-before)
	if all, _, _ := usedByAll(); all-busy < own-before-time.Duration(machine)*20*time.Millisecond {
		t.Errorf("all have used %v, this process %v", all-busy, own-before)
	}
}

// Each pod has an address of its own, and none of them is loopback or the Service.
func TestPod(t *testing.T) {
	seen := map[netip.Addr]bool{netip.MustParseAddr(Service): true, netip.MustParseAddr(node): true}
	for i := range mostPods {
		pod := Pod(i)
		testkit.Need(t, !pod.IsLoopback() && netip.MustParsePrefix("10.244.0.0/16").Contains(pod) && !seen[pod], "pod %d is at %s", i, pod)
		seen[pod] = true
	}
	testkit.Want(t, Pod(250).String() == "10.244.1.1", "got %v", Pod(250))
}
