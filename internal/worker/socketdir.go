package worker

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

const (
	socketDirPrefix = "cabrank-"
	lockName        = "lock"

	// maxSocketPath is safe everywhere: sun_path has 104 bytes on macOS and 108
	// on Linux, and gRPC libraries differ about the final zero.
	maxSocketPath = 100

	// maxRandomDigits is what os.MkdirTemp may append.
	maxRandomDigits = 10

	// unlockedGrace is how long a directory without a lock file may be the work
	// of a process that has just begun.
	unlockedGrace = time.Minute
)

// socketDir are the unix addresses: one socket per worker in a directory that only
// this user can enter.
//
// Shape: BASE/cabrank-RANDOM/ (mode 0700) with the file "lock", held by flock
// as long as the process lives, worker-N.sock and page-N.sock. The kernel drops the lock
// with the process, so the directory of a dead predecessor can be told from
// that of a living neighbor, and is removed by the next start.
//
// Metrics ports do not belong to the directory but to the machine: during an upgrade
// the workers of the other cabrank have some of them (R20).
type socketDir struct {
	base    string
	metrics *ports

	// Set by open.
	path string
	lock *os.File
}

func (d *socketDir) open() error {
	longest := filepath.Join(d.base, socketDirPrefix+"0123456789"[:maxRandomDigits], socketName(maxPlaces-1))
	if len(longest) > maxSocketPath {
		return fmt.Errorf("unix socket paths below %s would have up to %d bytes, %d are allowed: set XDG_RUNTIME_DIR or TMPDIR to a shorter path, or use transport tcp",
			d.base, len(longest), maxSocketPath)
	}
	sweepSocketDirs(d.base)
	for {
		won, err := d.create()
		if err != nil {
			return fmt.Errorf("directory for unix sockets: %w: set XDG_RUNTIME_DIR or TMPDIR to a folder that may be written, or use transport tcp", err)
		}
		if won {
			return nil
		}
	}
}

// create makes and locks a directory. It reports false if another process's
// sweep removed it before it was locked.
func (d *socketDir) create() (bool, error) {
	path, err := os.MkdirTemp(d.base, socketDirPrefix)
	if err != nil {
		return false, err
	}
	lock, err := lockFile(filepath.Join(path, lockName), os.O_CREATE)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.EWOULDBLOCK) {
			return false, nil
		}
		return false, errors.Join(err, os.RemoveAll(path))
	}
	mine, err := lock.Stat()
	there, statErr := os.Stat(lock.Name())
	if err != nil || statErr != nil || !os.SameFile(mine, there) {
		return false, lock.Close()
	}
	d.path, d.lock = path, lock
	return true, nil
}

// claim removes the socket that the worker's last process left, because bind refuses a
// path that exists. The path is always the same; index is that of the metrics port.
func (d *socketDir) claim(number, current int) (endpoint, error) {
	path, page := filepath.Join(d.path, socketName(number)), filepath.Join(d.path, pageName(number))
	for _, old := range []string{path, page} {
		if err := os.Remove(old); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return endpoint{}, fmt.Errorf("remove old socket: %w", err)
		}
	}
	at, err := d.metrics.claim(number, current)
	if err != nil {
		return endpoint{}, fmt.Errorf("metrics page: %w", err)
	}
	return endpoint{index: at.index, network: "unix", address: path, metricsPort: d.metrics.start + at.index, metricsPath: page}, nil
}

func (d *socketDir) inUse() []int      { return d.metrics.inUse() }
func (d *socketDir) avoid(ports []int) { d.metrics.avoid(ports) }

func (d *socketDir) close() {
	if d.lock == nil {
		return
	}
	// The next start sweeps files that cannot be removed now.
	_ = os.RemoveAll(d.path)
	_ = d.lock.Close()
}

func socketName(number int) string { return "worker-" + strconv.Itoa(number+1) + ".sock" }

// pageName is the name of the socket for a metrics page. It is not longer than
// socketName.
func pageName(number int) string { return "page-" + strconv.Itoa(number+1) + ".sock" }

// sweepSocketDirs removes directories of dead predecessors. Directories of others, and
// those that may be in use, stay.
func sweepSocketDirs(base string) {
	// The pattern is well-formed, so there is no error to see.
	paths, _ := filepath.Glob(filepath.Join(base, socketDirPrefix+"*"))
	for _, path := range paths {
		if info, err := os.Lstat(path); err == nil && info.IsDir() && ownedByUs(path) && onlySockets(path) {
			sweepSocketDir(path, info.ModTime())
		}
	}
}

func sweepSocketDir(path string, changed time.Time) {
	lock, err := lockFile(filepath.Join(path, lockName), 0)
	switch {
	case err == nil:
		defer lock.Close()
	case errors.Is(err, fs.ErrNotExist) && time.Since(changed) > unlockedGrace:
	default:
		return
	}
	_ = os.RemoveAll(path)
}

// onlySockets reports whether a directory holds only files of a socketDir: a directory
// of another program may have a similar name.
func onlySockets(path string) bool {
	entries, err := os.ReadDir(path)
	if err != nil {
		return false
	}
	for _, entry := range entries {
		isSocket, _ := filepath.Match("worker-*.sock", entry.Name()) // the pattern is well-formed, as the next one
		isPage, _ := filepath.Match("page-*.sock", entry.Name())
		if !isSocket && !isPage && entry.Name() != lockName {
			return false
		}
	}
	return true
}

func ownedByUs(path string) bool {
	var stat unix.Stat_t
	return unix.Lstat(path, &stat) == nil && int(stat.Uid) == os.Geteuid()
}

// lockFile opens and locks a file without waiting. Its error is
// unix.EWOULDBLOCK if a living process holds the lock.
func lockFile(path string, flag int) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW|flag, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}
