package admin

import (
	"errors"
	"net"

	"golang.org/x/sys/unix"
)

// claim makes this process the one that peerOf tells of for connections from now
// on, on a socket that another process has made. Source: unix(7), SO_PEERCRED: the
// credentials are those of the last call of listen.
func claim(listener *net.UnixListener) error {
	raw, err := listener.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { failed = unix.Listen(int(fd), unix.SOMAXCONN) })
	return errors.Join(err, failed)
}

// peerOf tells which user and process is at the other end of a connection, by
// the kernel's word: for an accepted one the process that connected, else the
// one that listens. Source: unix(7), SO_PEERCRED.
func peerOf(conn *net.UnixConn) (uid, pid int, known bool) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, 0, false
	}
	err = raw.Control(func(fd uintptr) {
		if who, askErr := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); askErr == nil {
			uid, pid, known = int(who.Uid), int(who.Pid), true
		}
	})
	return uid, pid, known && err == nil
}
