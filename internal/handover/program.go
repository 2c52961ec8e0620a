package handover

import (
	"os"
	"os/exec"
	"path/filepath"
)

// Program returns the path by which this process was started, so that what is
// there later can be started in its place: a file that was renamed over the old
// one, the new target of a link. /proc/self/exe would lead to the old file.
//
// Call it early: a relative path counts from the folder of that moment. If the
// first argument is not the path of this program, as a caller of exec may
// choose, it is os.Executable.
func Program() (string, error) {
	running, err := os.Executable()
	if err != nil {
		return "", err
	}
	if named, err := named(); err == nil && sameFile(named, running) {
		return named, nil
	}
	return running, nil
}

// named is the absolute path that the first argument leads to.
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
