package admin

import (
	"container/list"
	"net"
	"net/http"
	"sync"
	"syscall"
)

// spareFiles are left for the workers when callers of pages hold connections open.
const spareFiles = 10

// crowd bounds the connections of a Server. When one more comes than there may
// be, or than there are files for, the one is closed on which nothing has begun or
// ended for longest: whoever holds connections open keeps no probe out.
//
// Concurrency: changed may be called from anywhere, as http.Server does.
type crowd struct {
	most  int
	files uint64 // of the whole process that may be open, 0: not known

	mu     sync.Mutex
	order  list.List // of net.Conn, the one that changed last at the end
	places map[net.Conn]*list.Element
}

func newCrowd(most int) *crowd {
	return &crowd{most: most, files: OpenFiles(), places: make(map[net.Conn]*list.Element)}
}

// OpenFiles returns how many files this process may have open, 0 if that is not known. The
// runtime has raised the limit as far as it may.
func OpenFiles() uint64 {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return uint64(limit.Cur) //nolint:unconvert // its type depends on the system
}

// scarce reports whether a connection has one of the last descriptors: the system
// gives the lowest that is free.
func (c *crowd) scarce(conn net.Conn) bool {
	socket, ok := conn.(syscall.Conn)
	if !ok || c.files == 0 {
		return false
	}
	scarce := false
	if raw, err := socket.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { scarce = uint64(fd)+spareFiles >= c.files }) // a closed one has none
	}
	return scarce
}

// changed is told the states of connections (http.Server.ConnState).
func (c *crowd) changed(conn net.Conn, state http.ConnState) {
	if oldest := c.note(conn, state); oldest != nil {
		_ = oldest.Close() // its handler sees that, and tells changed
	}
}

// note returns the connection that has to go, nil if none has.
func (c *crowd) note(conn net.Conn, state http.ConnState) (oldest net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	place, known := c.places[conn]
	switch {
	case state == http.StateClosed || state == http.StateHijacked:
		c.remove(conn)
	case known:
		c.order.MoveToBack(place)
	case state == http.StateNew: // else it had to go before it came so far
		c.places[conn] = c.order.PushBack(conn)
		if c.order.Len() > c.most || c.order.Len() > 1 && c.scarce(conn) {
			oldest = c.order.Front().Value.(net.Conn) //nolint:forcetypeassert // nothing else is in it
			c.remove(oldest)
		}
	}
	return oldest
}

func (c *crowd) remove(conn net.Conn) {
	if place, known := c.places[conn]; known {
		c.order.Remove(place)
		delete(c.places, conn)
	}
}
