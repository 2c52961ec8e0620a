package socket

import (
	"net"
	"runtime"
	"time"
)

const (
	// lightShare is which part of a core a socket may cost and be light, beside lightBurst
	// at once.
	lightShare = 50
	lightBurst = 5 * time.Millisecond

	// longestTurn is how long sockets that are not light work before a core that is the
	// only one rests for as long, at most longestRest.
	longestTurn = time.Millisecond
	longestRest = 20 * time.Millisecond
)

// lane is one of those in which sockets that are not light work, one at a time. Who has it
// owns it.
type lane struct {
	worked time.Duration // since it has rested
}

// newLanes returns as many as half of the cores, so that calls find one that is free.
func newLanes() (lanes chan *lane) {
	lanes = make(chan *lane, max(1, runtime.GOMAXPROCS(0)/2))
	for range cap(lanes) {
		lanes <- &lane{}
	}
	return lanes
}

// turns is what a socket reads its connection by, and sees to it that sockets that cost much
// leave room for calls: of those that have cost more than a fiftieth of a core lately as
// many work at a time as half of the cores there are, and each gives up its thread often.
// Without others they have all.
//
// Life: work begins with what was read and ends with the next read, or before its goroutine
// waits for something, by rest or leave; after that it begins again, when no lock is held.
// Concurrency: one goroutine reads. It holds no lock when it does.
type turns struct {
	net.Conn

	session *session      // nil: there is none yet
	began   time.Time     // the work; zero: it rests
	cost    time.Duration // lately
	at      time.Time     // of cost
	lane    *lane         // nil: it works beside others, or rests
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

// work begins, unless it has: at once if the socket is light.
func (t *turns) work() {
	if !t.began.IsZero() {
		return
	}
	if t.cost > lightBurst {
		s := t.session
		s.held.Store(true)
		select {
		case t.lane = <-s.server.lanes:
		case <-s.out.drained(): // what follows is its end
		}
		s.held.Store(false)
	}
	t.began = time.Now()
}

// rest ends the work. On a single core it then has calls go first, for as long as sockets
// that are not light have worked.
func (t *turns) rest() {
	t.stop()
	if l := t.lane; l != nil && l.worked > longestTurn && runtime.GOMAXPROCS(0) == 1 {
		time.Sleep(min(l.worked, longestRest))
		l.worked = 0
	}
	t.leave()
}

// pause lets others have a turn amid the work.
func (t *turns) pause() {
	t.rest()
	t.work()
}

// leave is rest for who holds a lock, to wait.
func (t *turns) leave() {
	t.stop()
	if t.lane != nil {
		t.session.server.lanes <- t.lane // for which there is room
		t.lane = nil
	}
}

// stop counts what the work has cost.
func (t *turns) stop() {
	if t.began.IsZero() {
		return
	}
	now := time.Now()
	took := now.Sub(t.began)
	t.cost = max(0, t.cost-now.Sub(t.at)/lightShare) + took
	t.at, t.began = now, time.Time{}
	if t.lane != nil {
		t.lane.worked += took
	}
}
