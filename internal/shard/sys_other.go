//go:build !linux

package shard

import (
	"errors"
	"syscall"
)

func sysRead(fd int, p []byte) (int, error) {
	return again(func() (int, error) { return syscall.Read(fd, p) })
}

func sysWrite(fd int, p []byte) (int, error) {
	return again(func() (int, error) { return syscall.Write(fd, p) })
}

func again(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if !errors.Is(err, syscall.EINTR) {
			return n, err
		}
	}
}
