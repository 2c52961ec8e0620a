package testbed

import "syscall"

// enoughFiles lets a process hold 10,000 connections on either side.
const enoughFiles = 24_000

// RaiseFiles raises the limit of open files for this process and those that it
// starts, as far as it may, and returns it.
func RaiseFiles() (uint64, error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, err
	}
	// Set it even if it is high enough: Go has raised its own and gives children
	// the old one, unless somebody sets it.
	wanted := max(limit.Max, enoughFiles)
	err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: wanted, Max: wanted})
	if err == nil {
		return wanted, nil
	}
	limit.Cur = limit.Max // above it only root may
	return limit.Max, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit)
}
