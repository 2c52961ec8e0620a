package peers

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cabrank/cabrank/lab/internal/measure"
)

func TestChoose(t *testing.T) {
	got, err := choose("u16c50,u16", allWorkloads())
	if err != nil || len(got) != 2 || got[0].Name != "u16c50" || got[1].Name != "u16" {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := choose("u17", allWorkloads()); err == nil || !strings.Contains(err.Error(), "u16, ") {
		t.Errorf("an unknown name: got %v", err)
	}
}

func TestPeerCommands(t *testing.T) {
	at := addresses{listen: "127.0.0.1:1", backends: []string{"127.0.0.1:2", "127.0.0.1:3", "127.0.0.1:4", "127.0.0.1:5"}}
	dir := t.TempDir()
	for name, want := range map[string]string{
		"cabrank":        "b run --listen 127.0.0.1:1 --upstream 127.0.0.1:2,127.0.0.1:3,127.0.0.1:4,127.0.0.1:5 --slots 1000",
		"cabrank-5slots": "b run --listen 127.0.0.1:1 --upstream 127.0.0.1:2,127.0.0.1:3,127.0.0.1:4,127.0.0.1:5 --slots 5",
		"haproxy-tcp":    "b -db -f haproxy-tcp.cfg",
		"nghttpx":        "b --conf=nghttpx.conf --frontend=127.0.0.1,1;no-tls --backend=127.0.0.1,2;/;proto=h2 --backend=127.0.0.1,3;/;proto=h2 --backend=127.0.0.1,4;/;proto=h2 --backend=127.0.0.1,5;/;proto=h2",
		"nginx":          "b -p . -c nginx.conf",
		"envoy":          "b -c envoy.yaml --concurrency 1",
	} {
		p, err := choose(name, allPeers())
		if err != nil {
			t.Fatal(err)
		}
		p[0].binary = "b"
		command, err := p[0].command(dir, at)
		if got := strings.Join(command, " "); err != nil || !strings.HasPrefix(got, want) {
			t.Errorf("got %s, %v, want %s", got, err, want)
		}
	}
	if env := strings.Join(at.environment(), " "); env != "BENCH_LISTEN=127.0.0.1:1 BENCH_BACKEND_1=127.0.0.1:2 BENCH_BACKEND_2=127.0.0.1:3 BENCH_BACKEND_3=127.0.0.1:4 BENCH_BACKEND_4=127.0.0.1:5" {
		t.Errorf("got %s", env)
	}
}

// No place for an address is left in what a proxy reads, and the file lies
// where it runs.
func TestConfigurationsAreFilled(t *testing.T) {
	at := addresses{listen: "127.0.0.1:7", backends: []string{"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3", "127.0.0.1:4"}}
	for _, p := range allPeers() {
		if p.Config == "" {
			continue
		}
		text, err := p.proxy.Text(p.setting)
		if err != nil {
			t.Fatal(err)
		}
		p.ConfigText = text
		dir := t.TempDir()
		if _, err := p.command(dir, at); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(dir, p.Config))
		if err != nil || strings.Contains(string(got), "BENCH_") || !strings.Contains(string(got), "127.0.0.1") && p.Name != "nghttpx" {
			t.Errorf("%s: %v\n%s", p.Config, err, got)
		}
	}
}

func TestAddressesFor(t *testing.T) {
	at, err := addressesFor(peer{sockets: true}, "/dir")
	if err != nil || len(at.backends) != backends || at.backends[3] != "unix:/dir/backend4.sock" || strings.HasPrefix(at.listen, "unix:") {
		t.Errorf("got %+v, %v", at, err)
	}
	at, err = addressesFor(peer{}, "/dir")
	if all := append(at.backends, at.listen); err != nil || len(slices.Compact(slices.Sorted(slices.Values(all)))) != backends+1 {
		t.Errorf("got %+v, %v", at, err)
	}
}

// Who is measured on what: r4k beside no proxy, the variants of cabrank only
// where they differ, and nobody where it cannot work.
func TestPeersOf(t *testing.T) {
	o := options{peers: allPeers(), shards: shardPeers(), workloads: allWorkloads(), files: 20_000}
	for workload, want := range map[string]string{
		"u16":     "cabrank,haproxy-tcp,nghttpx,haproxy-h2,envoy,nginx,cabrank-5slots,cabrank-unix",
		"r4k":     "direct,cabrank,haproxy-tcp,nghttpx,haproxy-h2,envoy,nginx",
		"idle1k":  "cabrank,haproxy-tcp,nghttpx,haproxy-h2,envoy,nginx",
		"idle10k": "cabrank,nghttpx,haproxy-h2,envoy,nginx",
		"shards1": "cabrank-1shard,cabrank-2shards",
		"shards":  "cabrank-1shard,cabrank-2shards",
	} {
		w, err := choose(workload, allWorkloads())
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(names(o.peersOf(w[0])), ","); got != want {
			t.Errorf("%s: got %s, want %s", workload, got, want)
		}
	}
	if got := o.leftOut(); len(got) != 1 || got[0] != "haproxy-tcp on idle10k: it would need 20100 open files, 20000 are allowed" {
		t.Errorf("left out: %q", got)
	}
}

// Latency is compared at a rate that an L7 peer sets.
func TestPhases(t *testing.T) {
	w := allWorkloads()[0]
	o := options{peers: allPeers()[:2], files: 1000}
	if got := o.phases(w); !slices.Equal(got, []phase{phaseMax}) {
		t.Errorf("without an L7 peer: got %v", got)
	}
	o.peers = allPeers()[:3]
	if got := o.phases(w); !slices.Equal(got, []phase{phaseMax, phaseRate}) {
		t.Errorf("with one: got %v", got)
	}
}

func TestLoadArgs(t *testing.T) {
	w := allWorkloads()[0]
	for in, want := range map[phase]string{
		phaseMax: "-streams 25 -burst 0", phaseRate: "-streams 100 -rate 1234", phaseIdle: "-idle", phaseStart: "-first",
	} {
		if got := strings.Join(w.args(in, 1234.4), " "); got != "-conns 4 -size 16 -answers 1 -indexed=false -timeout 5S "+want {
			t.Errorf("%s: got %s", in, got)
		}
	}
}

func TestLinked(t *testing.T) {
	ldd := "\tlinux-vdso.so.1 (0x00007f)\n\tlibz.so.1 => /lib/libz.so.1 (0x00007f)\n\t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n"
	if got := linked(ldd); !slices.Equal(got, []string{"/lib/libz.so.1", "/lib64/ld-linux-x86-64.so.2"}) {
		t.Errorf("got %q", got)
	}
}

func TestParse(t *testing.T) {
	parse := Scenarios()[0].parse
	o, err := parse([]string{"-quick", "-peers", "cabrank,envoy"})
	if err != nil || o.repeats != 1 || len(o.peers) != 2 || len(o.workloads) != strings.Count(defaultWorkloads, ",")+1 {
		t.Errorf("got %+v, %v", o, err)
	}
	if o, err = parse([]string{"-quick", "-repeats", "3"}); err != nil || o.repeats != 3 || o.duration != 700*time.Millisecond {
		t.Errorf("got %+v, %v", o, err)
	}
	for _, bad := range [][]string{{"-peers", "traefik"}, {"-workloads", "u17"}, {"-workloads", ""}, {"more"}} {
		if _, err := parse(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

// What a scenario stands for is there, and is what is measured when nothing is said.
func TestScenarios(t *testing.T) {
	want := map[string]string{"peers": "9 workloads, 11 proxies, 5 rounds", "queue": "5 workloads, 6 proxies, 3 rounds", "raw": "1 workloads, 0 proxies, 5 rounds"}
	for _, s := range Scenarios() {
		o, err := s.parse(nil)
		if got := fmt.Sprintf("%d workloads, %d proxies, %d rounds", len(o.workloads), len(o.peers), o.repeats); err != nil || got != want[s.Name] {
			t.Errorf("%s: got %s, %v, want %s", s.Name, got, err, want[s.Name])
		}
		delete(want, s.Name)
	}
	if len(want) > 0 {
		t.Errorf("scenarios that are missing: %v", want)
	}
}

func TestForeign(t *testing.T) {
	m := measure.Result{Seconds: 2, CPU: 1, CoreBusy: []float64{1.5}}
	if got := foreign(m, 0); got != 0.25 {
		t.Errorf("foreign share: got %v, want 0.25", got)
	}
	if foreign(m, 7) != 0 || foreign(measure.Result{CoreBusy: []float64{1}}, 0) != 0 {
		t.Error("a core that is not there has no foreign share")
	}
	m = measure.Result{Seconds: 2, RigShare: 1.5, CoreBusy: []float64{2, 1.5}}
	if got := besideRig(m, 0, 1); got != 0.25 {
		t.Errorf("beside client and backends: got %v, want 0.25", got)
	}
	if besideRig(m, 0, 7) != 0 || besideRig(m, 1) != 0 {
		t.Error("what is not there, or not used by others, counts")
	}
}
