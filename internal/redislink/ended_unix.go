//go:build unix && !linux

package redislink

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// hasEnded looks without waiting, and leaves what has come.
func hasEnded(raw syscall.RawConn) (ended bool) {
	_ = raw.Control(func(fd uintptr) { // one that is closed is found by who writes
		var first [1]byte
		n, _, err := unix.Recvfrom(int(fd), first[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		ended = n == 0 && err == nil || err != nil && !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR)
	})
	return ended
}
