//go:build !linux

package measure

import "errors"

// ReadUse fails: counting CPU needs Linux.
func ReadUse(int) (Use, error) {
	return Use{}, errors.New("the CPU of a process can be read on Linux only")
}

// ReadAlone fails as ReadUse does.
func ReadAlone(pid int) (Use, error) { return ReadUse(pid) }

// ReadName returns "": there is no /proc.
func ReadName(int) string { return "" }

// Children finds nobody: there is no /proc.
func Children(int, string) map[string]int { return nil }
