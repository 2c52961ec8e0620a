package discover

import (
	"log/slog"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

// board is a Registry that remembers the last word about each address.
type board struct {
	mu    sync.Mutex
	state map[string]string
	ups   int
}

func (b *board) Up(address, network, dial string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.state[address] = "up at " + network + " " + dial
	b.ups++
}

func (b *board) Down(address string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.state[address] = "down"
}

func (b *board) await(t *testing.T, address, want string) {
	t.Helper()
	testkit.Eventually(t, 10*time.Second, address+" is "+want, func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.state[address] == want
	})
}

// endpoint accepts connections and holds them until it is closed.
type endpoint struct {
	net.Listener

	mu    sync.Mutex
	conns []net.Conn
	done  chan struct{}
}

func listen(t *testing.T, network, address string) *endpoint {
	t.Helper()
	ln, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	e := &endpoint{Listener: ln, done: make(chan struct{})}
	go e.accept() // ends with the listener
	t.Cleanup(e.stop)
	return e
}

func (e *endpoint) accept() {
	defer close(e.done)
	for {
		conn, err := e.Accept()
		if err != nil {
			return
		}
		e.mu.Lock()
		e.conns = append(e.conns, conn)
		e.mu.Unlock()
	}
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
	_ = e.Close() // a second close changes nothing
	<-e.done
	e.drop()
}

func (e *endpoint) held() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.conns)
}

func start(t *testing.T, addresses ...string) (*Static, *board) {
	t.Helper()
	b := &board{state: make(map[string]string)}
	s := NewStatic(addresses, b, slog.New(slog.DiscardHandler))
	s.Start()
	t.Cleanup(s.Stop)
	return s, b
}

// An endpoint is up while it can be reached, down when it cannot, and up again
// when it is back; nothing is left after Stop.
func TestStaticFollowsAnEndpoint(t *testing.T) {
	testkit.CheckLeaks(t)
	first := listen(t, "tcp", "127.0.0.1:0")
	address := first.Addr().String()
	s, b := start(t, address)
	b.await(t, address, "up at tcp "+address)
	if !s.EverReached() {
		t.Error("EverReached is false")
	}
	first.stop()
	b.await(t, address, "down")
	listen(t, "tcp", address)
	b.await(t, address, "up at tcp "+address)
}

// A server that ends silent connections and takes new ones stays up.
func TestStaticForgivesADroppedConnection(t *testing.T) {
	server := listen(t, "tcp", "127.0.0.1:0")
	address := server.Addr().String()
	_, b := start(t, address)
	b.await(t, address, "up at tcp "+address)
	for range 3 {
		testkit.Eventually(t, 10*time.Second, "a held connection", func() bool { return server.held() > 0 })
		server.drop()
	}
	testkit.Eventually(t, 10*time.Second, "a held connection", func() bool { return server.held() > 0 })
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ups != 1 || b.state[address] != "up at tcp "+address {
		t.Errorf("%d times up, now %s", b.ups, b.state[address])
	}
}

// Each address has a state of its own; Unix sockets are written unix:/path.
func TestStaticWatchesEachAddress(t *testing.T) {
	gone := listen(t, "tcp", "127.0.0.1:0")
	nobody := gone.Addr().String()
	gone.stop()
	path := filepath.Join(t.TempDir(), "s")
	listen(t, "unix", path)
	_, b := start(t, nobody, "unix:"+path)
	b.await(t, "unix:"+path, "up at unix "+path)
	b.mu.Lock()
	defer b.mu.Unlock()
	if state, told := b.state[nobody]; told {
		t.Errorf("an address that was never reached is told as %s", state)
	}
}

// Stop ends a watch that waits, and one that was never started.
func TestStaticStops(t *testing.T) {
	testkit.CheckLeaks(t)
	b := &board{state: make(map[string]string)}
	NewStatic(nil, b, slog.New(slog.DiscardHandler)).Stop()
	s := NewStatic([]string{"127.0.0.1:1"}, b, slog.New(slog.DiscardHandler))
	s.Start()
	s.Stop()
	if s.EverReached() {
		t.Error("EverReached is true")
	}
}
