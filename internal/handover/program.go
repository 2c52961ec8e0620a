package handover

import (
	"os"
	"os/exec"
	"path/filepath"
)

// Program returns the path by which this process was started, so that an upgrade starts
// the file that is there by then: one that was renamed over the old one, or the new target
// of a link. /proc/self/exe would lead to the old file.
//
// Call it early: a relative path counts from the present folder. If the first argument is
// not the path of this program, as exec allows, the result is os.Executable. Where the
// system does not tell that, as Linux without /proc, the first argument has to be right.
func Program() (string, error) {
	running, err := os.Executable()
	return program(running, err)
}

// program is Program for a result of os.Executable.
func program(running string, unknown error) (string, error) {
	named, err := named()
	if err == nil && (unknown != nil || sameFile(named, running)) {
		return named, nil //nolint:nilerr // the first argument is the answer where the system has none
	}
	return running, unknown
}

// named is the absolute path of the first argument.
func named() (string, error) {
	path, err := exec.LookPath(os.Args[0])
	if err != nil {
		return "", err
	}
	return filepath.Abs(path)
}

func sameFile(one, other string) bool {
	first, err := os.Stat(one)
	if err != nil {
		return false
	}
	second, err := os.Stat(other)
	return err == nil && os.SameFile(first, second)
}
