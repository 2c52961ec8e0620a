//go:build !linux

package measure

import "errors"

// ReadProcess fails: counting CPU needs Linux.
func ReadProcess(int) (Process, error) {
	return Process{}, errors.New("the CPU of a process can be read on Linux only")
}

// ReadHost returns nothing: there is no /proc.
func ReadHost() (Host, error) { return Host{}, nil }

// ReadMemory fails: the counters are Linux' own.
func ReadMemory(int) (Memory, error) {
	return Memory{}, errors.New("the memory of a process can be read on Linux only")
}
