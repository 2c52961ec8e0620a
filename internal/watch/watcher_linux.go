package watch

import (
	"errors"
	"net"
	"os"
	"sync"
	"syscall"
)

// batch is how many connections are asked for at a time.
const batch = 128

// Sleeper is a connection that nobody reads from. Wake does not block.
type Sleeper interface{ Wake() }

// Watcher watches connections of which it is told.
//
// Life: the zero value is one that watches nothing; Watch for each connection; Close when
// no Post is armed any more.
// Concurrency: every method may be called from anywhere.
// Source: epoll(7). The set of all connections is itself a file that becomes readable,
// of which the runtime's own poller knows: no thread waits for it.
type Watcher struct {
	ended sync.WaitGroup

	mu       sync.Mutex // a leaf
	set      *os.File   // nil until something is watched
	fd       int        // of set
	sleepers []Sleeper  // by descriptor
}

// open makes the set, if there is none. The caller holds mu.
func (w *Watcher) open() error {
	if w.set != nil {
		return nil
	}
	fd, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return os.NewSyscallError("epoll_create1", err)
	}
	if err := syscall.SetNonblock(fd, true); err != nil { // os.File has the poller wait for such alone
		_ = syscall.Close(fd) // the first error is what counts
		return os.NewSyscallError("fcntl", err)
	}
	set := os.NewFile(uintptr(fd), "epoll")
	raw, err := set.SyscallConn()
	if err != nil {
		_ = set.Close() // the first error is what counts
		return err
	}
	w.set, w.fd = set, fd
	w.ended.Go(func() { w.run(raw) }) // ends with the set
	return nil
}

// run wakes sleepers until the set is closed.
func (w *Watcher) run(raw syscall.RawConn) {
	events := make([]syscall.EpollEvent, batch)
	_ = raw.Read(func(fd uintptr) (done bool) { // the error says that it was closed
		for n := batch; n == batch; {
			n = wait(int(fd), events)
			for _, e := range events[:n] {
				if s := w.sleeper(int(e.Fd)); s != nil {
					s.Wake()
				}
			}
		}
		return false
	})
}

// wait returns how many events there are now.
func wait(fd int, events []syscall.EpollEvent) int {
	for {
		n, err := syscall.EpollWait(fd, events, 0)
		if !errors.Is(err, syscall.EINTR) {
			return max(n, 0)
		}
	}
}

func (w *Watcher) sleeper(fd int) Sleeper {
	w.mu.Lock()
	defer w.mu.Unlock()
	if fd < len(w.sleepers) {
		return w.sleepers[fd]
	}
	return nil
}

// Close ends it. No sleeper is woken any more when it returns.
func (w *Watcher) Close() {
	w.mu.Lock()
	set := w.set
	w.mu.Unlock()
	if set != nil {
		_ = set.Close() // a second time changes nothing
	}
	w.ended.Wait()
}

// Post is a connection that a Watcher knows.
//
// Life: Watch, Arm as often as wanted, Leave before the connection is closed or after.
// Concurrency: one Arm at a time; its sleeper may be woken before it has returned.
type Post struct {
	watcher *Watcher
	raw     syscall.RawConn
	sleeper Sleeper
	fd      int
}

// Watch knows a connection from now on, and has its sleeper woken when Arm was called.
//
// Errors: the connection has no descriptor, such as one over TLS, or the system's limit
// of what is watched is reached. It has to be read in another way then.
func (w *Watcher) Watch(nc net.Conn, s Sleeper) (*Post, error) {
	c, ok := nc.(syscall.Conn)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	p := &Post{watcher: w, raw: raw, sleeper: s}
	if closed := raw.Control(func(fd uintptr) { err = w.add(p, int(fd)) }); closed != nil {
		return nil, closed
	}
	return p, err
}

// add is called with a descriptor that is open meanwhile.
func (w *Watcher) add(p *Post, fd int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.open(); err != nil {
		return err
	}
	if err := w.control(syscall.EPOLL_CTL_ADD, fd, 0); err != nil {
		return err
	}
	if more := fd + 1 - len(w.sleepers); more > 0 {
		w.sleepers = append(w.sleepers, make([]Sleeper, more)...)
	}
	w.sleepers[fd], p.fd = p.sleeper, fd
	return nil
}

// Arm has the sleeper woken once: as soon as there is something to be read, the end of
// the connection included. Bytes that were read already do not count.
//
// Errors: the connection was closed; nobody is woken.
func (p *Post) Arm() (err error) {
	closed := p.raw.Control(func(fd uintptr) {
		err = p.watcher.control(syscall.EPOLL_CTL_MOD, int(fd), syscall.EPOLLIN|syscall.EPOLLRDHUP|syscall.EPOLLONESHOT)
	})
	if closed != nil {
		return closed
	}
	return err
}

func (w *Watcher) control(op, fd int, events uint32) error {
	return syscall.EpollCtl(w.fd, op, fd, &syscall.EpollEvent{Events: events, Fd: int32(fd)})
}

// Leave forgets the connection.
func (p *Post) Leave() {
	w := p.watcher
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sleepers[p.fd] == p.sleeper { // another one may have the number by now
		w.sleepers[p.fd] = nil
	}
}
