package redisd

import "syscall"

// endsWithParent has Redis end when the tests are killed.
func endsWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
