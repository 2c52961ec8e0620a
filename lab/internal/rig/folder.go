package rig

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	// folderName is how folders of arms begin, in that for temporary files.
	folderName = "cabrank-lab-"
	// lockName is the file that is locked for as long as an arm lives.
	lockName = "alive"
)

// folder is where the files of an arm are.
//
// Life: makeFolder; ended by remove, or by the next makeFolder of anybody when this
// process was killed.
type folder struct {
	path string
	lock *os.File
}

// makeFolder makes one, and removes those whose processes were killed.
func makeFolder() (f folder, err error) {
	left, _ := filepath.Glob(filepath.Join(os.TempDir(), folderName+"*")) // the pattern is right
	for _, path := range left {
		if lock, err := os.Open(filepath.Join(path, lockName)); err == nil {
			if unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
				_ = os.RemoveAll(path) // it may be another user's
			}
			lock.Close()
		}
	}
	if f.path, err = os.MkdirTemp("", folderName); err != nil {
		return f, err
	}
	// Locked before it has its name: nobody takes it for one that was left.
	name := filepath.Join(f.path, lockName)
	if f.lock, err = os.Create(name + ".new"); err != nil {
		return f, err
	}
	return f, errors.Join(unix.Flock(int(f.lock.Fd()), unix.LOCK_EX), os.Rename(name+".new", name))
}

// TempFolder makes a folder for files that the arms of a run share. remove removes it; if
// this process is killed, the next arm of anybody does.
func TempFolder() (path string, remove func(), err error) {
	f, err := makeFolder()
	if err != nil {
		f.remove()
		return "", nil, err
	}
	return f.path, f.remove, nil
}

func (f folder) remove() {
	if f.path != "" {
		_ = os.RemoveAll(f.path) // in a folder for temporary files
	}
	if f.lock != nil {
		f.lock.Close()
	}
}

// log is where a process of an arm writes, beside what is kept for errors.
func (s *Spec) log(process string) string {
	if s.Programs.Logs == "" {
		return ""
	}
	name := strings.Map(func(c rune) rune {
		if c == '/' || c < ' ' {
			return '-'
		}
		return c
	}, s.Name+", "+process)
	return filepath.Join(s.Programs.Logs, name+".log")
}

func (f folder) file(name string) string { return filepath.Join(f.path, name) }
