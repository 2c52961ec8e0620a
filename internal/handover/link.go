package handover

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// sendLimit bounds a write to a side that does not read. A message is far smaller than
// the kernel's buffer, so a write only waits after many unread messages.
const sendLimit = 5 * time.Second

// link is one end of the pair of sockets between the old and the new process.
//
// Concurrency: one goroutine receives, one sends; close may come at any time.
type link struct{ unix *net.UnixConn }

// newPair makes both ends; theirs is for the child's list of files. No other process
// inherits them.
func newPair() (ours *link, theirs *os.File, err error) {
	// Between socketpair and close-on-exec no child may be forked.
	syscall.ForkLock.RLock()
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(ends[0])
		unix.CloseOnExec(ends[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	theirs = os.NewFile(uintptr(ends[1]), "handover")
	ours, err = newLink(os.NewFile(uintptr(ends[0]), "handover"))
	if err != nil {
		return nil, nil, errors.Join(err, theirs.Close())
	}
	return ours, theirs, nil
}

// newLink takes over file, which must be a connected unix stream socket.
func newLink(file *os.File) (*link, error) {
	defer file.Close() // FileConn has made a copy
	conn, err := net.FileConn(file)
	if err != nil {
		return nil, err
	}
	unixConn, isUnix := conn.(*net.UnixConn)
	if !isUnix {
		return nil, errors.Join(fmt.Errorf("descriptor is a %s connection, not a unix socket", conn.LocalAddr().Network()), conn.Close())
	}
	return &link{unixConn}, nil
}

func (l *link) close() { _ = l.unix.Close() }

// send writes a message with descriptors, if any.
func (l *link) send(m *message, descriptors ...int) error {
	frame, err := newFrame(m)
	if err != nil {
		return err
	}
	var rights []byte
	if len(descriptors) > 0 {
		rights = unix.UnixRights(descriptors...)
	}
	if err := l.unix.SetWriteDeadline(time.Now().Add(sendLimit)); err != nil {
		return err
	}
	n, _, err := l.unix.WriteMsgUnix(frame, rights, nil)
	if err == nil && n < len(frame) {
		_, err = l.unix.Write(frame[n:])
	}
	return err
}

// receive reads the next message and the files that came with it, which belong to the
// caller. Only a message that announces listeners may have files.
func (l *link) receive(deadline time.Time) (*message, []*os.File, error) {
	if err := l.unix.SetReadDeadline(deadline); err != nil {
		return nil, nil, err
	}
	length, files, err := l.receiveHeader()
	var m *message
	if err == nil {
		m, err = readBody(l.unix, length)
	}
	if err == nil && len(files) != len(m.Sockets) {
		err = fmt.Errorf("%w: %d descriptors for %d listeners", errForeign, len(files), len(m.Sockets))
	}
	if err != nil {
		closeAll(files)
		return nil, nil, err
	}
	return m, files, nil
}

// receiveHeader also returns its files with an error.
func (l *link) receiveHeader() (length int, files []*os.File, err error) {
	header := make([]byte, headerSize)
	rights := make([]byte, unix.CmsgSpace(4*maxSockets))
	n, rightsLength, flags, _, err := l.unix.ReadMsgUnix(header, rights)
	if err != nil {
		return 0, nil, err
	}
	files, err = received(rights[:rightsLength])
	if err != nil {
		return 0, files, err
	}
	if flags&unix.MSG_CTRUNC != 0 {
		return 0, files, fmt.Errorf("%w: more than %d descriptors", errForeign, maxSockets)
	}
	if n == 0 {
		return 0, files, io.EOF
	}
	if _, err := io.ReadFull(l.unix, header[n:]); err != nil {
		return 0, files, err
	}
	length, err = bodyLength(header)
	return length, files, err
}

// received makes files of the descriptors in control messages; it also returns
// them with an error.
func received(rights []byte) ([]*os.File, error) {
	controls, err := unix.ParseSocketControlMessage(rights)
	if err != nil {
		return nil, os.NewSyscallError("control message", err)
	}
	var files []*os.File
	for i := range controls {
		descriptors, err := unix.ParseUnixRights(&controls[i])
		if err != nil {
			return files, os.NewSyscallError("SCM_RIGHTS", err)
		}
		for _, fd := range descriptors {
			unix.CloseOnExec(fd) // net has done that already if the kernel can do it
			files = append(files, os.NewFile(uintptr(fd), "listener"))
		}
	}
	return files, nil
}

func closeAll(files []*os.File) {
	for _, file := range files {
		_ = file.Close()
	}
}
