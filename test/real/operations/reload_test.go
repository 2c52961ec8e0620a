//go:build real || soak

package operations_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/cabrank/cabrank/examples/go/workpb"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// mountedFile is a file as Kubernetes mounts one from a config map: a link into a
// folder that is itself a link, which is switched from one folder to the next.
type mountedFile struct {
	t        testing.TB
	dir      string
	versions int
}

func mountFile(t testing.TB, text string) *mountedFile {
	t.Helper()
	m := &mountedFile{t: t, dir: t.TempDir()}
	m.replace(text)
	m.must(os.Symlink(filepath.Join("..data", "cabrank.yml"), m.path()))
	return m
}

func (m *mountedFile) path() string { return filepath.Join(m.dir, "cabrank.yml") }

// replace switches to a new version of the file, at once as whoever reads it sees it.
func (m *mountedFile) replace(text string) {
	m.t.Helper()
	m.versions++
	version := fmt.Sprintf("..%d", m.versions)
	m.must(os.Mkdir(filepath.Join(m.dir, version), 0o700))
	m.must(os.WriteFile(filepath.Join(m.dir, version, "cabrank.yml"), []byte(text), 0o600))
	m.must(os.Symlink(version, filepath.Join(m.dir, "..next")))
	m.must(os.Rename(filepath.Join(m.dir, "..next"), filepath.Join(m.dir, "..data")))
}

func (m *mountedFile) must(err error) {
	m.t.Helper()
	testkit.Must(m.t, err)
}

// dialCounted returns a client that counts the connections which it makes.
func dialCounted(t *testing.T, addr string) (workpb.WorkClient, *atomic.Int64) {
	t.Helper()
	dials := new(atomic.Int64)
	dial := func(ctx context.Context, addr string) (net.Conn, error) {
		dials.Add(1)
		var d net.Dialer
		return d.DialContext(ctx, "tcp", addr)
	}
	return workpb.NewWorkClient(harness.Dial(t, addr, grpc.WithContextDialer(dial))), dials
}

// reloadRig is a cabrank whose file changes, and an operator who says so.
type reloadRig struct {
	*harness.Controlled

	file *mountedFile
}

// startReloadRig starts it with a file of two workers, and waits for both.
func startReloadRig(t *testing.T, text string) *reloadRig {
	t.Helper()
	file, socket := mountFile(t, text), filepath.Join(harness.ShortTempDir(t), "c.sock")
	worker := harness.ChaosWorker(t, filepath.Join(t.TempDir(), "ledger"))
	c := harness.StartCabrank(t, append([]string{"--config", file.path(), "--control", socket, "--"}, worker...)...)
	r := &reloadRig{harness.Control(c, socket), file}
	r.awaitWorkers(2)
	return r
}

// refuses reloads what is refused, with all of its faults.
func (r *reloadRig) refuses(faults ...string) {
	r.T.Helper()
	err := r.Op.Run(harness.Patience, "reload")
	for _, fault := range append(faults, "nothing has changed") {
		testkit.Want(r.T, err != nil && strings.Contains(err.Error(), fault), "the answer does not say %q: %v", fault, err)
	}
}

// reload takes a text, and waits until so many workers are ready.
func (r *reloadRig) reload(text string, workers int) {
	r.T.Helper()
	r.file.replace(text)
	testkit.Must(r.T, r.Op.Run(harness.Patience, "reload"))
	r.awaitWorkers(workers)
}

// awaitWorkers waits until so many workers are there, and ready.
func (r *reloadRig) awaitWorkers(n int) {
	r.T.Helper()
	r.Await(fmt.Sprint(n, " workers"), func(s *harness.OperatorStatus) bool { return s.Wanted == n && s.Ready == n && len(s.Workers) == n })
}

func shortCall(ctx context.Context, client workpb.WorkClient) error {
	_, err := client.Io(ctx, &workpb.IoRequest{Millis: 5})
	return err
}

func wholeStream(ctx context.Context, client workpb.WorkClient) error {
	_, err := harness.CountStream(ctx, client, new(harness.ChaosCall))
	return err
}

const reloadFile = `
workers: {count: %d, slots: 4, transport: unix}
queue: {length: %d}
log.level: %s
explain: %t
methods:
  /cabrank.example.v1.Work/Cpu: {idempotent: true, retries: %d}
fair: {key: "%s", weights: {127.0.0.1: %d}}
limits: {calls: %d, idle_timeout: %dm}
buffer_total: %dMiB
`

// What changes in the file is taken again and again, under calls and streams that
// never pause: none of them fails, and no connection ends.
func TestReloadsLoseNoCallAndNoConnection(t *testing.T) {
	r := startReloadRig(t, "workers: {count: 2, slots: 4, transport: unix}\n")
	var dialed []*atomic.Int64
	var loads []*harness.Loop
	for range 3 {
		client, dials := dialCounted(t, r.Addr)
		dialed = append(dialed, dials)
		loads = append(loads, harness.StartLoop(t, 2, harness.Working(client, shortCall)), harness.StartLoop(t, 1, harness.Working(client, wholeStream)))
	}
	client, dials := dialCounted(t, r.Addr)
	dialed = append(dialed, dials)
	for i := range 12 {
		level, workers, explain := "info", 2+i%3, i%2 == 0
		key := []string{"peer", "metadata:user-agent", "authority", "metadata:x-absent"}[i%4]
		if explain {
			level = "debug"
		}
		r.reload(fmt.Sprintf(reloadFile, workers, 100+i, level, explain, i%4, key, 1+i, 1000+i, 10+i, 8<<(i%2)), workers)
		testkit.Equal(t, explained(t, client), explain, "reload %d: answers explain themselves", i)
	}
	for _, load := range loads {
		load.WantNoFailure()
	}
	for i, dials := range dialed {
		testkit.Equal(t, dials.Load(), 1, "connections of caller %d", i)
	}
	r.WaitLog(harness.Patience, `"level":"DEBUG"`)
	r.WaitLog(harness.Patience, `"key":"queue.length"`)
}

// explained makes a call and reports whether its trailers tell who has served it.
func explained(t *testing.T, client workpb.WorkClient) bool {
	t.Helper()
	var trailer metadata.MD
	_, err := client.Cpu(t.Context(), &workpb.CpuRequest{N: 1}, grpc.Trailer(&trailer))
	testkit.Want(t, err == nil, "%v", err)
	return len(trailer["cabrank-worker"]) > 0
}

// A file with faults, one that is half written and one that has gone change
// nothing, by cabrank reload and by cabrank restart: what runs goes on.
func TestBadFilesChangeNothing(t *testing.T) {
	const good = "workers: {count: 2, slots: 4, transport: unix}\nexplain: true\n"
	r := startReloadRig(t, good)
	client, dials := dialCounted(t, r.Addr)
	before, err := r.Op.Status()
	testkit.Must(t, err)
	wantSame := func() {
		t.Helper()
		now, err := r.Op.Status()
		testkit.Want(t, err == nil && now.Generation == before.Generation && now.Wanted == 2 && now.Ready == 2,
			"the status is %+v, %v", now, err)
		testkit.Want(t, explained(t, client), "something has changed")
	}

	r.file.replace("workers: {count: 5, slots: 4, transport: unix}\nqueue: {length: -1}\nexplian: false\n")
	r.refuses(`cabrank.yml:2: queue.length: "-1" is out of range`, "cabrank.yml:3: explian: unknown key; did you mean explain?")
	wantSame()
	testkit.Want(t, r.Op.Run(harness.Patience, "restart") != nil, "a bad file does not refuse a restart")
	wantSame()
	r.file.replace("workers: {count: 5, slots")
	r.refuses("is not valid YAML")
	wantSame()
	testkit.Must(t, os.Remove(r.file.path()))
	r.refuses("no such file")
	wantSame()
	testkit.Must(t, os.WriteFile(r.file.path(), []byte("workers: {count: 3, slots: 4, transport: unix}\nworkers.env: {A: s3cret}\n"), 0o600))
	testkit.Must(t, r.Op.Run(harness.Patience, "reload"))
	testkit.Eventually(t, harness.Patience, "the third worker", func() bool {
		now, err := r.Op.Status()
		return err == nil && now.Ready == 3
	})
	testkit.Want(t, !explained(t, client) && dials.Load() == 1, "the good file was not taken, or cost connections: %d", dials.Load())
	for _, want := range []string{`"needs_restart":["workers.env[A]"]`, `"new":"(hidden)"`} {
		r.WaitLog(harness.Patience, want)
	}
	testkit.Want(t, !strings.Contains(r.Log(), "s3cret"), "the log has a secret")
}

// Where all endpoints are upstreams there is nothing to roll, and SIGHUP takes the
// configuration.
func TestHangupReloadsWithoutWorkers(t *testing.T) {
	file := mountFile(t, "upstreams: [127.0.0.1:1]\n")
	c := harness.StartCabrank(t, "--config", file.path(), "--control", filepath.Join(harness.ShortTempDir(t), "c.sock"))
	file.replace("upstreams: [127.0.0.1:2]\nqueue.length: -1\n")
	c.Signal(syscall.SIGHUP)
	c.WaitLog(harness.Patience, `queue.length: \"-1\" is out of range`)
	file.replace("upstreams: [127.0.0.1:2]\n")
	c.Signal(syscall.SIGHUP)
	c.WaitLog(harness.Patience, `"key":"upstreams","old":"127.0.0.1:1","new":"127.0.0.1:2"`)
}
