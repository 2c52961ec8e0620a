package shard

import (
	"syscall"
	"unsafe"
)

// The sockets are non-blocking, so that a read or a send never waits: the
// scheduler need not be told, which saves its share of every system call.

func sysRead(fd int, p []byte) (int, error) {
	return raw(syscall.SYS_RECVFROM, fd, p, syscall.MSG_DONTWAIT)
}

func sysWrite(fd int, p []byte) (int, error) {
	return raw(syscall.SYS_SENDTO, fd, p, syscall.MSG_NOSIGNAL|syscall.MSG_DONTWAIT)
}

func raw(call uintptr, fd int, p []byte, flags uintptr) (int, error) {
	for {
		n, _, errno := syscall.RawSyscall6(call, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), flags, 0, 0)
		switch errno {
		case 0:
			return int(n), nil
		case syscall.EINTR:
		case syscall.EAGAIN:
			return -1, syscall.EAGAIN
		default:
			return -1, errno
		}
	}
}
