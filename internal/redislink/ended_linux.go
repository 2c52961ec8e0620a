package redislink

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// hasEnded looks without waiting, and leaves what has come. What has come before the end,
// such as a goodbye or the last record of TLS, does not hide it.
func hasEnded(raw syscall.RawConn) (ended bool) {
	_ = raw.Control(func(fd uintptr) { // one that is closed is found by who writes
		look := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		n, err := unix.Poll(look, 0)
		ended = n > 0 && err == nil
	})
	return ended
}
