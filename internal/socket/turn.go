package socket

import (
	"net"
	"runtime"
	"time"
)

const (
	// A socket is light if it costs at most 1/lightShare of a core, beside lightBurst at
	// once.
	lightShare = 50
	lightBurst = 5 * time.Millisecond

	// On a single core, after heavy sockets have worked for longestTurn the core rests from
	// them for as long, at most longestRest.
	longestTurn = time.Millisecond
	longestRest = 20 * time.Millisecond
)

// workPermit is the permit that a heavy socket needs to work. Its holder owns it.
type workPermit struct {
	worked time.Duration // since the last rest
}

// newWorkPermits returns permits for half of the cores, so that calls find a free one.
func newWorkPermits() (permits chan *workPermit) {
	permits = make(chan *workPermit, max(1, runtime.GOMAXPROCS(0)/2))
	for range cap(permits) {
		permits <- &workPermit{}
	}
	return permits
}

// turns reads the connection of a socket, and makes sockets that cost much leave room for
// calls: of the sockets that have recently cost more than a fiftieth of a core, only as many
// work at a time as half of the cores, and each gives up its thread often. On an idle
// machine they lose nothing.
//
// Life: work begins with a read and ends with the next read, or before the goroutine waits
// for something, by rest or leave; after that work is called again, when no lock is held.
// Concurrency: one goroutine reads. It holds no lock when it does.
type turns struct {
	net.Conn

	session *session      // nil during the handshake
	began   time.Time     // when the work began; zero: it rests
	cost    time.Duration // recently
	at      time.Time     // of cost
	permit  *workPermit   // nil: it works beside others, or rests
}

// Read implements io.Reader.
func (t *turns) Read(p []byte) (int, error) {
	t.rest()
	n, err := t.Conn.Read(p)
	if t.session != nil {
		t.work()
	}
	return n, err
}

// work begins the work, unless it has begun. A light socket does not wait for that.
func (t *turns) work() {
	if !t.began.IsZero() {
		return
	}
	if t.cost > lightBurst {
		s := t.session
		s.notReading.Store(true)
		select {
		case t.permit = <-s.server.workPermits:
		case <-s.out.drained(): // the socket ends
		}
		s.notReading.Store(false)
	}
	t.began = time.Now()
}

// rest ends the work. On a single core it then lets calls go first, for as long as heavy
// sockets have worked.
func (t *turns) rest() {
	t.stop()
	if l := t.permit; l != nil && l.worked > longestTurn && runtime.GOMAXPROCS(0) == 1 {
		time.Sleep(min(l.worked, longestRest))
		l.worked = 0
	}
	t.leave()
}

// pause lets others have a turn in the middle of the work.
func (t *turns) pause() {
	t.rest()
	t.work()
}

// leave is rest for a goroutine that holds a lock and is about to wait.
func (t *turns) leave() {
	t.stop()
	if t.permit != nil {
		t.session.server.workPermits <- t.permit // for which there is room
		t.permit = nil
	}
}

// stop adds the time of the work to the cost.
func (t *turns) stop() {
	if t.began.IsZero() {
		return
	}
	now := time.Now()
	took := now.Sub(t.began)
	t.cost = max(0, t.cost-now.Sub(t.at)/lightShare) + took
	t.at, t.began = now, time.Time{}
	if t.permit != nil {
		t.permit.worked += took
	}
}
