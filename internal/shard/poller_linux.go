package shard

import (
	"os"
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// pollBatch is how many sockets one look at the kernel's list may return; with
// pollLooks it bounds how many are read while the shard's lock is held.
const pollBatch = 64

// pollLooks is how often one turn looks for ready sockets before it sends. It does not
// wait: a look that finds nothing is the last.
const pollLooks = 4

// readOnTime is the part of one turn for the sockets that wait to be read (poller.unread).
const readOnTime = time.Millisecond

// poller waits for the sockets of a shard: one epoll instance and one
// goroutine for all of them, so that an idle connection costs no stack.
//
// It waits by the runtime's own poller, for which an epoll instance is a descriptor
// like any other; sockets are registered edge-triggered, so that a socket that was read
// empty costs no second look.
//
// Life: made for the first socket, ended by stop.
// Concurrency: guarded by the shard's lock, but for run.
type poller struct {
	shard   *Shard
	fd      int
	file    *os.File
	done    chan struct{} // closed when run has ended
	sockets []*socket     // by descriptor
	unread  []*socket     // sockets that have more bytes than were read
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
	// With this os.File waits by the runtime's poller; epoll_wait itself never waits.
	if err := unix.SetNonblock(fd, true); err != nil {
		_ = unix.Close(fd) // it was never used
		return nil
	}
	p := &poller{shard: s, fd: fd, file: os.NewFile(uintptr(fd), "epoll"), done: make(chan struct{})}
	go p.run() // ended by stop, which waits for it
	return p
}

// run handles ready sockets until the poller is stopped.
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

// round reads all ready sockets, then sends the resulting output. It reports whether
// more sockets are ready already.
func (p *poller) round() (more bool) {
	s := p.shard
	s.Lock()
	s.begin()
	if !s.stopped {
		more = p.lookOn()
	}
	s.turn()
	s.leave()
	return more
}

// lookOn is look, and reports whether another turn has to follow, for sockets or for what is
// unread.
func (p *poller) lookOn() bool { return p.look() || len(p.unread) > 0 }

// look reads the ready sockets, and those that became ready meanwhile, for at most
// pollLooks looks, so that their output leaves in the same sends. The waiting sockets
// (unread) come after them. It reports whether more may be ready.
func (p *poller) look() (more bool) {
	late := p.left <= 0
	p.left = readOnTime
	for range pollLooks {
		n := p.wait()
		for i := range p.events[:n] {
			p.tell(&p.events[i])
		}
		if late { // the last turn used up readOnTime: do not delay output again
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

// wait asks for ready sockets, without waiting.
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

// tell hands an event to its socket. A socket that an earlier event closed is not in the
// table any more; its number cannot be in use again, for that takes the shard's lock.
func (p *poller) tell(e *unix.EpollEvent) {
	if d := p.sockets[e.Fd]; d != nil {
		d.ready(e.Events)
	}
}

// readOn reads, one after the other, the waiting sockets: those with more bytes than were
// read, and those that have cost too much. Together they get readOnTime of a turn.
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
	again := p.unread // they come after the sockets that were not read now
	p.unread = append(list[:0], list[done:]...)
	p.unread = append(p.unread, again...)
	clear(again)
	clear(list[min(len(p.unread), len(list)):])
	p.spare = again[:0]
}

const (
	// pollEnd are the events at the end of a socket.
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

// await sets whether the socket gets an event when it takes more (EPOLLOUT). It is only
// set while needed: a Unix socket would report that whenever its peer has read.
func (p *poller) await(d *socket, writable bool) error {
	e := unix.EpollEvent{Events: pollRead, Fd: int32(d.fd)}
	if writable {
		e.Events |= unix.EPOLLOUT
	}
	return unix.EpollCtl(p.fd, unix.EPOLL_CTL_MOD, d.fd, &e)
}

// remove removes a socket that is about to be closed. A child process between fork and
// exec may keep it open for a moment: without this it would still be reported.
func (p *poller) remove(d *socket) {
	p.sockets[d.fd] = nil
	_ = unix.EpollCtl(p.fd, unix.EPOLL_CTL_DEL, d.fd, nil) // it is registered
}
