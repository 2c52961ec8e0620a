package door

import "golang.org/x/sys/unix"

// setUserTimeout fails for sockets that do not know of it; PING finds those.
func setUserTimeout(fd uintptr) {
	_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(UnheardFor.Milliseconds()))
}
