package service

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/admin"
	"github.com/cabrank/cabrank/internal/config"
	"github.com/cabrank/cabrank/internal/relay"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/internal/web"
	"github.com/cabrank/cabrank/internal/worker"
)

// reloadable is a service without workers whose configuration file is a text that
// a test changes.
type reloadable struct {
	*service
	t    *testing.T
	file string // empty: there is none
	log  bytes.Buffer
}

func newReloadable(t *testing.T, file string, args ...string) *reloadable {
	t.Helper()
	r := &reloadable{t: t, file: file}
	level := new(slog.LevelVar)
	load := func() (*config.Config, error) {
		return config.Load(config.Sources{CPUs: 2, Procs: 2, Command: args, ReadFile: func(name string) ([]byte, error) {
			if r.file == "" || name != "cabrank.yml" {
				return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
			}
			return []byte(r.file), nil
		}})
	}
	cfg, err := load()
	testkit.Must(t, err)
	r.service = &service{cfg: cfg, log: slog.New(slog.NewTextHandler(&r.log, &slog.HandlerOptions{Level: level})), settings: settings{load: load, level: level}, orders: newOrders()}
	r.relay, r.http1 = relay.New(r.relayOptions(cfg, r.service.log)), web.NewHTTP1(webLimits(cfg), nil, nil, r.service.log)
	t.Cleanup(r.relay.Close)
	t.Cleanup(r.http1.Close)
	testkit.Must(t, r.makeUpstreams())
	return r
}

func (r *reloadable) want(file, applied, restart, upgrade string) {
	r.t.Helper()
	r.file = file
	found, err := r.reload()
	testkit.Need(r.t, err == nil, "%q: %v", file, err)
	for _, list := range []struct {
		name, want string
		got        []string
	}{{"applied", applied, found.Applied}, {"needs restart", restart, found.NeedsRestart}, {"needs upgrade", upgrade, found.NeedsUpgrade}} {
		if got := strings.Join(list.got, " "); got != list.want || list.got == nil {
			r.t.Errorf("%q: %s is %q, want %q", file, list.name, got, list.want)
		}
	}
}

func (r *reloadable) refused(file string, want ...string) {
	r.t.Helper()
	r.file = file
	before := r.current()
	_, err := r.reload()
	refused, ok := errors.AsType[*admin.FaultsError](err)
	testkit.Want(r.t, ok && strings.Join(refused.Faults, "\n") == strings.Join(want, "\n"), "%q: got %#v", file, err)
	testkit.Want(r.t, r.current() == before, "%q: refused, and something has changed", file)
}

// A reload takes what it can and names the rest, until a roll has taken that; what
// is changed back needs nothing any more.
func TestReloadNamesWhatHasChanged(t *testing.T) {
	const start = "upstreams: [127.0.0.1:1]\nworkers.command: [ruby, w.rb]\n"
	r := newReloadable(t, start)
	r.want(start, "", "", "")
	r.want(start+"queue.length: 5\nlog.level: debug\nworkers.start_port: 9100\nworkers.env: {A: s3cret}\n", "queue.length log.level", "workers.env[A]", "workers.start_port")
	now := r.current()
	testkit.Want(t, now.Queue.Length == 5 && now.Workers.StartPort == 9000 && r.cfg.Queue.Length == 1000, "now %+v", now)
	testkit.Want(t, r.service.log.Enabled(t.Context(), slog.LevelDebug), "the level of the log has not changed")
	text := r.log.String()
	if !strings.Contains(text, `key=queue.length old=1000 new=5 holds=now`) || !strings.Contains(text, `key=workers.start_port old=9000 new=9100 holds="with cabrank upgrade"`) || strings.Contains(text, "s3cret") {
		t.Errorf("the log has\n%s", text)
	}
	r.want(start+"queue.length: 5\nworkers.env: {A: s3cret}\n", "log.level", "workers.env[A]", "")
	r.want(start+"queue.length: 5\nworkers.env: {A: s3cret}\nfair: {key: 'metadata:x-tenant', weights: {a: 2}}\n", "fair.key fair.weights", "workers.env[A]", "")
	r.want(start+"queue.length: 5\nworkers.env: {A: s3cret}\n", "fair.key fair.weights", "workers.env[A]", "")
	r.rolled(r.current())
	r.want(start+"workers.env: {A: s3cret}\n", "queue.length", "", "")
	r.want("upstreams: [127.0.0.1:2, 127.0.0.1:3]\nworkers.command: [ruby, w.rb]\n", "upstreams", "workers.env[A]", "")
}

// Nothing changes if anything is wrong, and every fault is told.
func TestReloadRefusesWhatIsWrong(t *testing.T) {
	const start = "upstreams: [127.0.0.1:1]\nslots: 2\n"
	r := newReloadable(t, start)
	r.refused("queue.length: x\nlog.level: debug\nqueue.lengt: 2\n", `cabrank.yml:1: queue.length: "x" is not a number; allowed: 0 to 1000000`,
		"cabrank.yml:3: queue.lengt: unknown key; did you mean queue.length?")
	r.refused("", "cabrank.yml: was read at the start and is not there any more; allowed: the file, which may be empty")
	r.refused("upstreams: [127.0.0.1:1]\nslots: 50\nstream_slots: 20\n",
		"cabrank.yml:3: stream_slots: 20 is more than all slots, 2 (upstreams 1 x workers.slots 2), unless cabrank is upgraded; allowed: 1 to 2, or auto")
	r.want(start, "", "", "")
	r.door = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8081} // not that of the configuration: it was given
	r.refused("upstreams: [127.0.0.1:8080, 'localhost:8081']\nslots: 2\n",
		"cabrank.yml:1: upstreams: localhost:8081 is cabrank itself, which takes calls on 127.0.0.1:8081 (listen: default); allowed: addresses of others")
}

// A reload that is refused for keys of tokens that cannot be read has replaced no certificate,
// and begun no TLS.
func TestReloadRefusedForKeysKeepsCertificates(t *testing.T) {
	folder := t.TempDir()
	secret := filepath.Join(folder, "secret")
	first, firstKey, _ := testkit.Certificate(t, folder, "first.test", time.Now().Add(time.Hour))
	second, secondKey, _ := testkit.Certificate(t, folder, "second.test", time.Now().Add(time.Hour))
	start := "upstreams: [127.0.0.1:1]\nauth: {secret: " + secret + ", doors: all}\n"
	tls := func(cert, key string) string { return "tls: [{cert: " + cert + ", key: " + key + "}]\n" }
	write := func() {
		testkit.Must(t, os.WriteFile(secret, []byte(strings.Repeat("s", 32)), 0o600))
	}
	for _, before := range []string{"", tls(first, firstKey)} {
		write()
		r := newReloadable(t, start+before)
		testkit.Must(t, r.openAuth(new(relay.Options)))
		r.want(start+before, "", "", "")
		serving := func() string {
			if files := r.certs.Load(); files != nil {
				return fmt.Sprint(slices.Collect(maps.Keys(files.Expires())))
			}
			return "nothing"
		}
		was := serving()
		testkit.Must(t, os.Remove(secret))
		r.refused(start+tls(second, secondKey), "auth.secret: the file cannot be opened: no such file or directory")
		testkit.Equal(t, serving(), was, "who serves after a refusal")
		write()
		r.want(start+tls(second, secondKey), "tls", "", "")
		testkit.Equal(t, serving(), "["+second+"]", "who serves")
	}
}

// An address that somebody has written and a service manager has opened elsewhere is told;
// a default is not, nor one that is the same.
func TestAddressesThatDoNotCount(t *testing.T) {
	r := newReloadable(t, "upstreams: [127.0.0.1:1]\nlisten: :9090\nprobes: 127.0.0.1:5555\n")
	on := &handed{&net.TCPAddr{IP: net.IPv6zero, Port: 8080}}
	r.tellIdleAddress("listen", r.cfg.Listen.Addr(), on)
	r.tellIdleAddress("listen", ":8080", on)
	r.tellIdleAddress("metrics", r.cfg.Metrics.Addr(), on)
	r.tellIdleAddress("probes", r.cfg.Probes.Addr(), on)
	r.tellIdleAddress("control", "/run/c.sock", on)
	want := []string{
		`warning="cabrank.yml:2: listen has no effect: the service manager has opened [::]:8080 in place of :9090"`,
		`warning="cabrank.yml:3: probes has no effect: the service manager has opened [::]:8080 in place of 127.0.0.1:5555"`,
	}
	lines := strings.Split(strings.TrimSpace(r.log.String()), "\n")
	testkit.Want(t, len(lines) == len(want) && strings.HasSuffix(lines[0], want[0]) && strings.HasSuffix(lines[1], want[1]),
		"log:\n%s", r.log.String())
}

// handed is a listener that someone else has opened.
type handed struct{ addr net.Addr }

func (h *handed) Accept() (net.Conn, error) { return nil, net.ErrClosed }
func (h *handed) Close() error              { return nil }
func (h *handed) Addr() net.Addr            { return h.addr }

// An upgrade does not begin where the new cabrank would find no file.
func TestUpgradeNeedsTheFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "cabrank.yml")
	testkit.Refused(t, fileThere(name), name)
	testkit.Must(t, os.WriteFile(name, nil, 0o600))
	for _, there := range []string{name, ""} {
		testkit.Must(t, fileThere(there))
	}
}

// During an upgrade nothing is reloaded: the new process has read the file already.
func TestNoReloadDuringAnUpgrade(t *testing.T) {
	r := newReloadable(t, "upstreams: [127.0.0.1:1]\n", "--upstream", "127.0.0.1:1")
	r.upgrading = make(chan struct{}, 1)
	r.upgrading <- struct{}{}
	_, err := r.reload()
	testkit.Want(t, errors.Is(err, errUpgrading), "error %v", err)
	<-r.upgrading
	_, err = r.reload()
	testkit.Want(t, err == nil, "%v", err)
}

// The new side of an upgrade may have less workers than min_ready asks for. Without
// a surge one of them has to be able to leave. A number that adapts may become as low as
// its bound, also if min_ready counts upstreams, too.
func TestFewerWorkersForAnUpgrade(t *testing.T) {
	adapts := &config.Config{Command: []string{"w"}, Workers: worker.Settings{Count: worker.Amount{N: 4, Min: 1, Max: 4}, MinReady: 3}}
	testkit.Equal(t, (&service{cfg: adapts, orders: newOrders()}).workerSettings(adapts).MinReady, 1, "min ready of workers that adapt")
	for _, test := range []struct{ surge, first, want int }{{1, 0, 3}, {1, 2, 2}, {0, 2, 1}, {0, 1, 0}, {0, 0, 3}} {
		cfg := &config.Config{Command: []string{"w"}, Workers: worker.Settings{Count: worker.Amount{N: 4}, MinReady: 3, MaxSurge: test.surge}}
		s := &service{cfg: cfg, firstWorkers: test.first, orders: newOrders()}
		testkit.Equal(t, s.workerSettings(cfg).MinReady, test.want, "surge %d, %d at first: min ready", test.surge, test.first)
		s.settings.grown.Store(true)
		testkit.Equal(t, s.workerSettings(cfg).MinReady, 3, "later min ready")
	}
}

// What a stop, and a new process of an upgrade, may take at most has the hooks in it
// that run then.
func TestStopLimit(t *testing.T) {
	cfg := &config.Config{PreStopDelay: time.Second, DrainTimeout: 30 * time.Second, Workers: worker.Settings{StopTimeout: 5 * time.Second, BootTimeout: time.Minute}}
	testkit.Equal(t, stopLimit(cfg, false), 36*time.Second+stopSlack, "without a hook")
	cfg.Tracing.Endpoint = "env"
	testkit.Equal(t, stopLimit(cfg, false), 36*time.Second+stopSlack+lastSpans, "with spans")
	cfg.Tracing.Endpoint = ""
	cfg.Hooks.BeforeStop, cfg.Hooks.BeforeStart = []string{"true"}, []string{"true"}
	testkit.Equal(t, stopLimit(cfg, true), 65*time.Second+stopSlack, "with a hook, at once")
	testkit.Equal(t, (&service{cfg: cfg}).bootLimit(), 2*time.Minute+bootTime, "a new process may boot for")
}
