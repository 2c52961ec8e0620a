//go:build !linux

package process

import "syscall"

// groupLeader makes a child the leader of a process group. Without a
// parent-death signal the keeper alone ends it when cabrank is killed.
func groupLeader() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
