package admin

import (
	"net"

	"golang.org/x/sys/unix"
)

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
