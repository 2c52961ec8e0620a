package handover

import "syscall"

func siblingAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Cloneflags: syscall.CLONE_PARENT}
}
