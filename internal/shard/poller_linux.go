package shard

import (
	"os"
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// pollBatch is how many sockets one look at the kernel's list may bring; with
// pollLooks it bounds how many are read while the shard's lock is held.
const pollBatch = 64

// pollLooks is how often one turn looks for sockets that are ready before it
// sends. Nothing is waited for: a look that finds nothing is the last.
const pollLooks = 4

// readOnTime is what the sockets that are read in turn may take of one turn of all.
const readOnTime = time.Millisecond

// poller waits for the sockets of a shard: one epoll instance and one
// goroutine for all of them, so that an idle connection costs no stack.
//
// It waits by the runtime's own poller, to which an epoll instance is a
// descriptor like any other; sockets are registered edge-triggered, so that a
// socket that was read empty costs no second look.
//
// Life: made for the first socket, ended by stop.
// Concurrency: guarded by the shard's lock, but for run.
type poller struct {
	shard   *Shard
	fd      int
	file    *os.File
	done    chan struct{} // closed when run has ended
	sockets []*socket     // by descriptor
	unread  []*socket     // had more than they could be read in their turn
	spare   []*socket
	left    time.Duration // of readOnTime in this turn
	events  [pollBatch]unix.EpollEvent
}

// newPoller returns nil if the process is out of descriptors.
func newPoller(s *Shard) *poller {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil
	}
	// What makes os.File wait by the runtime's poller; epoll_wait itself is
	// never told to wait.
	if err := unix.SetNonblock(fd, true); err != nil {
		_ = unix.Close(fd) // nothing was written
		return nil
	}
	p := &poller{shard: s, fd: fd, file: os.NewFile(uintptr(fd), "epoll"), done: make(chan struct{})}
	go p.run() // ended by stop, which waits for it
	return p
}

// run handles what is ready until the poller is stopped.
func (p *poller) run() {
	defer close(p.done)
	raw, err := p.file.SyscallConn()
	if err != nil {
		return // it is closed already
	}
	_ = raw.Read(func(uintptr) bool { // fails when the file is closed
		for p.round() {
			runtime.Gosched()
		}
		return false
	})
}

// stop ends the goroutine and waits for it. Called without the lock.
func (p *poller) stop() {
	_ = p.file.Close()
	<-p.done
}

// round reads every socket that is ready, then sends what came of it. It
// reports whether more is ready already.
func (p *poller) round() (more bool) {
	s := p.shard
	s.Lock()
	s.begin()
	if !s.stopped {
		more = p.look() || len(p.unread) > 0
	}
	s.turn()
	s.leave()
	return more
}

// look reads the sockets that are ready, and those that became ready meanwhile,
// as long as there are any and for so many looks: what they bring leaves in the
// same sends. Those that wait in turn come behind. It reports whether there may be
// more.
func (p *poller) look() (more bool) {
	late := p.left <= 0
	p.left = readOnTime
	for range pollLooks {
		n := p.wait()
		for i := range p.events[:n] {
			p.tell(&p.events[i])
		}
		if late { // what others wait for does not wait for that again
			p.shard.sendEarly()
			late = false
		}
		p.readOn()
		more = n == len(p.events)
		if n == 0 {
			break
		}
	}
	return more
}

// wait asks which sockets are ready, without waiting.
func (p *poller) wait() int {
	for {
		n, _, errno := syscall.RawSyscall6(syscall.SYS_EPOLL_PWAIT, uintptr(p.fd), uintptr(unsafe.Pointer(&p.events[0])), pollBatch, 0, 0, 0)
		if errno == 0 {
			return int(n)
		}
		if errno != syscall.EINTR {
			return 0 // the file is closed
		}
	}
}

// tell hands an event to its socket. One that was closed by an event in front
// of this one is gone from the table; its number cannot be in use again, for
// that takes the shard's lock.
func (p *poller) tell(e *unix.EpollEvent) {
	if d := p.sockets[e.Fd]; d != nil {
		d.ready(e.Events)
	}
}

// readOn goes on with sockets that had more than their turn, and those that have used
// up their share, in turn: all of them together get readOnTime of a turn.
func (p *poller) readOn() {
	list, done := p.unread, 0
	p.unread = p.spare[:0]
	for done < len(list) && p.left > 0 {
		began := p.shard.clock()
		d := list[done]
		done++
		d.unread = false
		d.read()
		p.left -= p.shard.clock() - began
	}
	again := p.unread // behind those that have not had theirs
	p.unread = append(list[:0], list[done:]...)
	p.unread = append(p.unread, again...)
	clear(again)
	clear(list[min(len(p.unread), len(list)):])
	p.spare = again[:0]
}

const (
	// pollEnd comes with whatever a socket without any further bytes has left.
	pollEnd  = unix.EPOLLRDHUP | unix.EPOLLHUP | unix.EPOLLERR
	pollRead = unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLET
)

// add registers a socket.
func (p *poller) add(d *socket) error {
	e := unix.EpollEvent{Events: pollRead, Fd: int32(d.fd)}
	if err := unix.EpollCtl(p.fd, unix.EPOLL_CTL_ADD, d.fd, &e); err != nil {
		return err
	}
	if d.fd >= len(p.sockets) {
		p.sockets = append(p.sockets, make([]*socket, d.fd+1-len(p.sockets))...)
	}
	p.sockets[d.fd] = d
	return nil
}

// await has the socket told when it takes more (EPOLLOUT), or not any more.
// Otherwise a Unix socket would tell so whenever its peer has read.
func (p *poller) await(d *socket, writable bool) error {
	e := unix.EpollEvent{Events: pollRead, Fd: int32(d.fd)}
	if writable {
		e.Events |= unix.EPOLLOUT
	}
	return unix.EpollCtl(p.fd, unix.EPOLL_CTL_MOD, d.fd, &e)
}

// remove forgets a socket that is about to be closed. A child process between
// fork and exec may keep it open for a moment: without this it would go on to
// be reported.
func (p *poller) remove(d *socket) {
	p.sockets[d.fd] = nil
	_ = unix.EpollCtl(p.fd, unix.EPOLL_CTL_DEL, d.fd, nil) // it is registered
}
