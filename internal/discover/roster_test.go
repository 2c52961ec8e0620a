package discover

import (
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/cabrank/cabrank/internal/testkit"
)

// board is a Registry, Membership and Activity that remembers all words about
// each endpoint.
type board struct {
	mu    sync.Mutex
	words map[string][]string
	work  map[string]Work
}

func newBoard() *board {
	return &board{words: make(map[string][]string), work: make(map[string]Work)}
}

func (b *board) note(name, word string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.words[name] = append(b.words[name], word)
}

func (b *board) Up(name, network, dial string) { b.note(name, "up at "+network+" "+dial) }
func (b *board) Down(name string)              { b.note(name, "down") }
func (b *board) Add(name string)               { b.note(name, "add") }
func (b *board) Cut(name string)               { b.note(name, "cut") }
func (b *board) Remove(name string)            { b.note(name, "remove") }

func (b *board) Suspect(name string, suspect bool) {
	b.note(name, map[bool]string{true: "suspect", false: "trusted"}[suspect])
}

func (b *board) Activity(name string) Work {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.work[name]
}

// setWork says what the data plane sees of an endpoint.
func (b *board) setWork(name string, w Work) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.work[name] = w
}

// told returns all words about an endpoint, in order.
func (b *board) told(name string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.words[name])
}

func (b *board) await(t *testing.T, name, want string) {
	t.Helper()
	testkit.Eventually(t, 20*time.Second, name+" is "+want, func() bool {
		told := b.told(name)
		return len(told) > 0 && told[len(told)-1] == want
	})
}

func (b *board) awaitUp(t *testing.T, address string) {
	t.Helper()
	b.await(t, address, "up at tcp "+address)
}

// wantTold holds all that was said about an endpoint.
func (b *board) wantTold(t *testing.T, name string, want ...string) {
	t.Helper()
	testkit.EqualList(t, b.told(name), want, "%s: told", name)
}

// endpoint is a gRPC server with a health service, whose connections a test can
// count and end.
type endpoint struct {
	net.Listener

	checks *health.Server
	server *grpc.Server
	done   chan struct{}

	deaf     atomic.Bool // accepts no more
	ending   chan struct{}
	stopping sync.Once

	mu      sync.Mutex
	conns   []net.Conn
	stopped bool
}

func listen(t *testing.T, network, address string, options ...grpc.ServerOption) *endpoint {
	t.Helper()
	ln, err := net.Listen(network, address)
	testkit.Must(t, err)
	e := &endpoint{Listener: ln, checks: health.NewServer(), server: grpc.NewServer(options...), done: make(chan struct{}), ending: make(chan struct{})}
	grpc_health_v1.RegisterHealthServer(e.server, e.checks)
	go func() { // ends with the listener
		defer close(e.done)
		_ = e.server.Serve(e)
	}()
	t.Cleanup(e.stop)
	return e
}

func (e *endpoint) Accept() (net.Conn, error) {
	if e.deaf.Load() {
		<-e.ending
		return nil, net.ErrClosed
	}
	conn, err := e.Listener.Accept()
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stopped {
		_ = conn.Close()
	}
	e.conns = append(e.conns, conn)
	return conn, nil
}

// drop ends the connections that are open.
func (e *endpoint) drop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, conn := range e.conns {
		_ = conn.Close() // a second close changes nothing
	}
	e.conns = nil
}

func (e *endpoint) stop() {
	e.stopping.Do(func() { close(e.ending) })
	_ = e.Close() // a second close changes nothing
	e.mu.Lock()
	e.stopped = true
	e.mu.Unlock()
	e.drop() // the server would wait for the silent ones
	e.server.Stop()
	<-e.done
}

func (e *endpoint) held() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.conns)
}

func (e *endpoint) say(serving bool) {
	status := grpc_health_v1.HealthCheckResponse_NOT_SERVING
	if serving {
		status = grpc_health_v1.HealthCheckResponse_SERVING
	}
	e.checks.SetServingStatus("", status)
}

// testOptions are those of a roster whose board is b.
func testOptions(b *board, upstreams ...string) Options {
	return Options{
		Times:     Times{DrainTimeout: time.Minute, HealthInterval: 50 * time.Millisecond, HealthTimeout: time.Minute},
		Upstreams: upstreams, MinTTL: time.Second, MaxTTL: time.Minute,
		Registry: b, Membership: b, Activity: b, Logger: slog.New(slog.DiscardHandler),
	}
}

func newRoster(t *testing.T, o Options) *Roster {
	t.Helper()
	r, err := New(o)
	testkit.Must(t, err)
	t.Cleanup(r.Stop)
	return r
}

// start starts a roster whose options are edited.
func start(t *testing.T, edit func(*Options), upstreams ...string) (*Roster, *board) {
	t.Helper()
	b := newBoard()
	o := testOptions(b, upstreams...)
	edit(&o)
	r := newRoster(t, o)
	r.Start()
	return r, b
}

func asUsual(*Options) {}

// startUp starts a roster of one endpoint and waits until that is up.
func startUp(t *testing.T, edit func(*Options)) (server *endpoint, address string, r *Roster, b *board) {
	t.Helper()
	server = listen(t, "tcp", "127.0.0.1:0")
	address = server.Addr().String()
	r, b = start(t, edit, address)
	b.awaitUp(t, address)
	return server, address, r, b
}

// An endpoint is up while it can be reached, down when it cannot, and up again
// when it is back; nothing is left after Stop.
func TestRosterFollowsAnEndpoint(t *testing.T) {
	testkit.CheckLeaks(t)
	first, address, r, b := startUp(t, asUsual)
	testkit.Want(t, r.EverReached(), "EverReached is false")
	first.stop()
	b.await(t, address, "down")
	if got := r.Endpoints(); len(got) != 1 || got[0].State != Unreachable || got[0].Reason == "" || !slices.Equal(got[0].From, []string{address}) {
		t.Errorf("status %+v", got)
	}
	listen(t, "tcp", address)
	b.awaitUp(t, address)
	r.Stop()
	b.wantTold(t, address, "add", "up at tcp "+address, "down", "up at tcp "+address)
}

// A server that ends silent connections and takes new ones stays up.
func TestRosterForgivesADroppedConnection(t *testing.T) {
	server, address, _, b := startUp(t, asUsual)
	for range 3 {
		testkit.Eventually(t, 30*time.Second, "a held connection", func() bool { return server.held() > 0 })
		server.drop()
	}
	testkit.Eventually(t, 30*time.Second, "a held connection", func() bool { return server.held() > 0 })
	told := b.told(address)
	testkit.Want(t, !slices.Contains(told, "down"), "told %q", told)
}

// Each address has a state of its own; Unix sockets are written unix:/path.
func TestRosterWatchesEachAddress(t *testing.T) {
	gone := listen(t, "tcp", "127.0.0.1:0")
	nobody := gone.Addr().String()
	gone.stop()
	path := filepath.Join(t.TempDir(), "s")
	listen(t, "unix", path)
	_, b := start(t, asUsual, nobody, "unix:"+path, nobody) // twice is once
	b.await(t, "unix:"+path, "up at unix "+path)
	b.await(t, nobody, "add")
	b.wantTold(t, nobody, "add")
}

// R6: NOT_SERVING takes an endpoint out, SERVING brings it back.
func TestRosterHearsHealth(t *testing.T) {
	server := listen(t, "tcp", "127.0.0.1:0")
	server.say(false)
	address := server.Addr().String()
	r, b := start(t, asUsual, address)
	testkit.Eventually(t, 20*time.Second, "a first answer", func() bool { return r.Endpoints()[0].State == NotServing })
	b.wantTold(t, address, "add")
	for range 2 {
		server.say(true)
		b.awaitUp(t, address)
		server.say(false)
		b.await(t, address, "down")
	}
}

// Who listens and does not speak HTTP/2 gets no calls: a process that has not
// begun to accept, or is stopped.
func TestRosterHearsSilence(t *testing.T) {
	silent := testkit.Listen(t)
	defer silent.Close()
	address := silent.Addr().String()
	r, b := start(t, func(o *Options) { o.HealthTimeout = 100 * time.Millisecond }, address)
	testkit.Eventually(t, 20*time.Second, "the end of the patience", func() bool { return r.Endpoints()[0].State == Unreachable })
	b.wantTold(t, address, "add")
}

// An operator's word takes an endpoint out and brings it back.
func TestRosterHold(t *testing.T) {
	_, address, r, b := startUp(t, asUsual)
	testkit.Must(t, r.SetDrained(address, true))
	b.await(t, address, "down")
	testkit.Eventually(t, 30*time.Second, "the state", func() bool { return r.Endpoints()[0].State == Drained })
	testkit.Must(t, r.SetDrained(address, false))
	b.awaitUp(t, address)
	err := r.SetDrained("10.0.0.1:1", true)
	testkit.Want(t, err != nil && strings.Contains(err.Error(), "10.0.0.1:1"), "a name that nobody knows: %v", err)
}

// An endpoint that no upstream names ends its calls and goes; one that is named stays as it
// is; and who is named again in the meantime is up again.
func TestRosterReplace(t *testing.T) {
	var names []string
	for range 3 {
		names = append(names, listen(t, "tcp", "127.0.0.1:0").Addr().String())
	}
	r, b := start(t, asUsual, names[0], names[1])
	for _, name := range names[:2] {
		b.awaitUp(t, name)
	}
	b.setWork(names[0], Work{InFlight: 1})
	testkit.Want(t, r.Replace([]string{"dns:"}) != nil, "nonsense was taken")
	testkit.Must(t, r.Replace(names[1:]))
	b.awaitUp(t, names[2])
	b.await(t, names[0], "down")
	got := r.Endpoints()
	testkit.Want(t, len(got) == 3, "while a call runs: %+v", got)
	testkit.Must(t, r.Replace(names))
	b.awaitUp(t, names[0])
	testkit.Must(t, r.Replace(names[1:]))
	b.await(t, names[0], "down")
	b.setWork(names[0], Work{})
	b.await(t, names[0], "remove")
	testkit.Eventually(t, 30*time.Second, "its end", func() bool { return len(r.Endpoints()) == 2 })
	b.wantTold(t, names[1], "add", "up at tcp "+names[1])
	testkit.Must(t, r.Replace(names))
	b.awaitUp(t, names[0])
}

// What has not ended after the drain timeout is cut. Other times hold for endpoints that
// are watched already, and for those that drain.
func TestRosterTakesOtherTimes(t *testing.T) {
	server, address, r, b := startUp(t, func(o *Options) { o.HealthInterval, o.DrainTimeout = time.Hour, time.Hour })
	server.say(false) // and nobody asks
	r.Configure(Times{DrainTimeout: time.Hour, HealthInterval: 20 * time.Millisecond, HealthTimeout: time.Minute})
	b.await(t, address, "down")
	b.setWork(address, Work{InFlight: 1})
	testkit.Must(t, r.Replace(nil))
	r.Configure(Times{DrainTimeout: time.Millisecond, HealthInterval: time.Hour, HealthTimeout: time.Hour})
	b.await(t, address, "remove")
	b.wantTold(t, address, "add", "up at tcp "+address, "down", "cut", "remove")
}

// Stop ends a watch that waits, and one that was never started.
func TestRosterStops(t *testing.T) {
	testkit.CheckLeaks(t)
	b := newBoard()
	newRoster(t, testOptions(b)).Stop()
	r := newRoster(t, testOptions(b, "127.0.0.1:1", "dns:nowhere.invalid.:1"))
	r.Start()
	r.Stop()
	testkit.Want(t, !r.EverReached(), "EverReached is true")
	testkit.Want(t, r.Replace([]string{"127.0.0.1:2"}) != nil, "Replace after Stop")
}

// No test leaves a goroutine or a listener behind.
func TestMain(m *testing.M) { testkit.VerifyMain(m) }
