package proxies

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

func twoWorkers() Config {
	return Config{
		Listen: "127.0.0.1:7", Control: "/dir/sock",
		Workers: []Worker{{Name: "worker-1", Addr: "127.0.0.1:8", Slots: 3}, {Name: "worker-2", Addr: "127.0.0.1:9", Slots: 3, Out: true}},
	}
}

func secured(c *Config) { c.Cert = "/dir/cert" }

// What a configuration depends on is in it.
func TestText(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*Config)
		want   []string // lines, without what is before them
	}{
		{"haproxy-tcp", func(*Config) {}, []string{
			"nbthread 1", "maxconn 12000", `stats socket "/dir/sock" mode 600 level admin`, `bind "127.0.0.1:7"`, "balance roundrobin",
			`server worker-1 "127.0.0.1:8" check inter 1s`, `server worker-2 "127.0.0.1:9" check inter 1s disabled`,
		}},
		{"haproxy", func(c *Config) { c.Policy = "leastconn" }, []string{
			"nbthread 1", "timeout queue 60s", "option abortonclose", "balance leastconn", `server worker-1 "127.0.0.1:8" proto h2 maxconn 3 check inter 1s`,
		}},
		{"haproxy", func(c *Config) { c.Control = "" }, []string{`server worker-1 "127.0.0.1:8" proto h2 maxconn 3 check inter 1s`}},
		{"envoy", func(c *Config) { c.Policy = "LEAST_REQUEST" }, []string{
			"lb_policy: LEAST_REQUEST", "type: STATIC",
			`- endpoint: {address: {socket_address: {address: "127.0.0.1", port_value: 8}}}`,
		}},
		{"envoy-web", func(*Config) {}, []string{"- name: envoy.filters.http.connect_grpc_bridge", "- name: envoy.filters.http.grpc_web"}},
		{"nginx", func(c *Config) { c.Policy, c.Connections = "least_conn", 50 }, []string{
			"least_conn;", "worker_connections 50;", "server 127.0.0.1:8;", "server 127.0.0.1:9 down;", "listen 127.0.0.1:7 http2;",
		}},
		{"haproxy-tcp", secured, []string{`bind "127.0.0.1:7" ssl crt "/dir/cert" alpn h2`}},
		{"haproxy", secured, []string{`bind "127.0.0.1:7" ssl crt "/dir/cert" alpn h2`}},
		{"nginx", secured, []string{"listen 127.0.0.1:7 http2 ssl;", "ssl_certificate_key /dir/cert;"}},
		{"envoy", secured, []string{`- {certificate_chain: {filename: "/dir/cert"}, private_key: {filename: "/dir/cert"}}`}},
		{"nghttpx", func(*Config) {}, []string{"workers=1", "frontend=127.0.0.1,7;no-tls", "backend=127.0.0.1,8;/;proto=h2"}},
	} {
		p, known := Find(tc.name)
		testkit.Need(t, known, "%v", tc.name)
		c := twoWorkers()
		tc.change(&c)
		text, err := p.Text(c)
		testkit.Must(t, err)
		lines := strings.Split(text, "\n")
		for i := range lines {
			lines[i] = strings.TrimSpace(lines[i])
		}
		for _, want := range tc.want {
			testkit.Want(t, slices.Contains(lines, want), "%s: no line %q in\n%s", tc.name, want, text)
		}
	}
}

func TestPolicies(t *testing.T) {
	p, _ := Find("nginx")
	_, err := p.Text(Config{Listen: "a:1", Policy: "least_conn;\nserver evil"})
	testkit.Refused(t, err, `policy "least_conn;\nserver evil": want words`)
}

// All that a proxy reads is written where it runs, and those that are out get no calls.
func TestWrite(t *testing.T) {
	for _, p := range All() {
		dir := t.TempDir()
		args, err := p.Write(dir, twoWorkers())
		testkit.Want(t, err == nil && strings.Contains(strings.Join(args, " "), p.config), "%s: %q, %v", p.Name, args, err)
		text, err := os.ReadFile(filepath.Join(dir, p.config))
		testkit.Want(t, err == nil && !strings.Contains(string(text), "port_value: 9}") && !strings.Contains(string(text), ",9;"),
			"%s: %v\n%s", p.Name, err, text)
	}
}

func TestLookSaysWhatToInstall(t *testing.T) {
	p := Proxy{Name: "toll", Program: "no-such-proxy", Install: "the Debian package toll"}
	if _, err := p.Look(); err == nil || !strings.HasSuffix(err.Error(), "install the Debian package toll") || !strings.HasPrefix(err.Error(), "no-such-proxy is not here") {
		t.Errorf("got %v", err)
	}
}

// What a proxy says against a change is told.
func TestChangeIsRefused(t *testing.T) {
	nghttpx, _ := Find("nghttpx")
	testkit.RefusedBy(t, nghttpx.Change(t.Context(), twoWorkers()), "nghttpx is not told of workers that come and go")
	socket := filepath.Join(t.TempDir(), "sock")
	listener, err := net.Listen("unix", socket)
	testkit.Must(t, err)
	defer listener.Close()
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		b := make([]byte, 200)
		n, _ := conn.Read(b)
		_, _ = conn.Write([]byte("No such server: " + string(b[:n])))
	}()
	haproxy, _ := Find("haproxy")
	c := Config{Control: socket, Workers: []Worker{{Name: "worker-1", Out: true}}}
	want := `tell haproxy of its workers: it says "No such server: set server workers/worker-1 state maint"`
	testkit.RefusedBy(t, haproxy.Change(t.Context(), c), want)
}
