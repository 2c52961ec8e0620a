package admin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// maxControlPath is safe everywhere: sun_path has 104 bytes on macOS and 108
	// on Linux.
	maxControlPath = 100

	// answerLimit is how long a socket may take to show that somebody listens.
	answerLimit = time.Second

	// folderLimit is how long two starts may wait for each other at one folder.
	// Each holds it for at most answerLimit.
	folderLimit = 5 * time.Second
	folderPoll  = 10 * time.Millisecond
)

// ControlListener is the unix socket of the control.
//
// Shape: made by ListenControl, ListenControlAuto or InheritControl; ended by
// Close, which removes the socket file if it is still ours, or by Release and
// Close, which leave it to the process that has taken the socket over. It is a
// net.Listener that admits this user and root and nobody else (Linux).
//
// Concurrency: all methods may be called from anywhere.
type ControlListener struct {
	*net.UnixListener

	path     string
	made     fs.FileInfo // of the file, so that nobody else's is removed
	released atomic.Bool
	closing  sync.Once
	closeErr error
}

// TakenError says that a living process listens on the path.
type TakenError struct {
	Path string
	PID  int // 0 if it cannot be seen
}

// Error implements error.
func (e *TakenError) Error() string {
	by := "a process that runs"
	if e.PID > 0 {
		by = fmt.Sprintf("a process that runs (pid %d)", e.PID)
	}
	return fmt.Sprintf("control socket %s belongs to %s: end that, or choose another path with --control", e.Path, by)
}

// ControlFolders returns where control sockets are that nobody has named: of
// this user, below the runtime folder or else the folder for temporary files. The
// first is used, by a server and by who looks for one. What is in another belongs to
// a service that had no runtime folder, or has nothing to do with this shell: it is
// told of, and nothing is asked of it.
func ControlFolders() []string {
	name := "cabrank-" + strconv.Itoa(os.Geteuid())
	folders := []string{filepath.Join(os.TempDir(), name)}
	runtime := os.Getenv("XDG_RUNTIME_DIR") // only an absolute one counts, by its specification
	if info, err := os.Stat(runtime); err == nil && info.IsDir() && filepath.IsAbs(runtime) {
		folders = append([]string{filepath.Join(runtime, name)}, folders...)
	}
	return folders
}

// ListenControlAuto listens on PORT.sock in folder, or on PORT-PID.sock if that
// belongs to another cabrank: two may share a port.
//
// The folder is made if it is missing and must be ours alone: a folder of mode
// 0700 that this user owns, no symbolic link. Its path can be guessed, so that
// anybody could have made it before us.
func ListenControlAuto(folder string, port int) (listener *ControlListener, err error) {
	for range 3 {
		// An empty folder may be removed by another cabrank that ends.
		if listener, err = listenAuto(folder, port); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return listener, err
}

func listenAuto(folder string, port int) (*ControlListener, error) {
	if err := ensurePrivate(folder); err != nil {
		return nil, err
	}
	sweepControl(folder)
	name := strconv.Itoa(port)
	listener, err := bindControl(filepath.Join(folder, name+".sock"))
	if _, taken := errors.AsType[*TakenError](err); taken {
		return bindControl(filepath.Join(folder, name+"-"+strconv.Itoa(os.Getpid())+".sock"))
	}
	return listener, err
}

// ListenControl listens on a path that somebody has chosen. Its folder is made,
// with mode 0700, if only that is missing. One that is there may be open for
// others to look into, since the socket has mode 0600, but not to write to,
// unless it is sticky.
//
// Errors: one line that names the path; a *TakenError if somebody listens there.
// What a dead process has left is replaced.
func ListenControl(path string) (*ControlListener, error) {
	if err := ensureSafe(filepath.Dir(path)); err != nil {
		return nil, err
	}
	return bindControl(path)
}

// InheritControl takes over the socket of a predecessor, which has released it
// or is about to. The file is this listener's from now on.
func InheritControl(listener *net.UnixListener) (*ControlListener, error) {
	control, err := ownControl(listener, listener.Addr().String())
	if err != nil {
		return nil, err
	}
	if err := claim(listener); err != nil { // last: the predecessor goes on if this fails
		return nil, errors.Join(fmt.Errorf("control socket %s: %w", listener.Addr(), err), listener.Close())
	}
	return control, nil
}

// Path returns where the socket is.
func (l *ControlListener) Path() string { return l.path }

// Release leaves the socket file to another process: Close only closes.
func (l *ControlListener) Release() { l.released.Store(true) }

// Accept returns the next connection of this user or of root.
func (l *ControlListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.AcceptUnix()
		if err != nil {
			return nil, err
		}
		if admitted(conn) {
			return conn, nil
		}
		_ = conn.Close()
	}
}

// Close removes the socket file and stops listening. It may be called again.
func (l *ControlListener) Close() error {
	l.closing.Do(func() {
		// First the file, so that nobody finds one on which nobody listens.
		if there, err := os.Lstat(l.path); err == nil && !l.released.Load() && os.SameFile(there, l.made) {
			_ = os.Remove(l.path) // the next start replaces what cannot be removed
			if folder := filepath.Dir(l.path); slices.Contains(ControlFolders(), folder) {
				_ = os.Remove(folder) // if it is empty; who has just looked at it makes it anew
			}
		}
		l.closeErr = l.UnixListener.Close()
	})
	return l.closeErr
}

// admitted says whether a peer may give orders. The modes of folder and socket
// have kept others out already; this stands behind them.
func admitted(conn *net.UnixConn) bool {
	uid, _, known := peerOf(conn)
	return !known || uid == os.Geteuid() || uid == 0
}

// sweepControl removes what dead processes have left in a folder of ours. With
// ports that the system chooses no later start would come upon it by its name.
func sweepControl(folder string) {
	unlock, err := lockFolder(folder)
	if err != nil {
		return // the start that follows says so
	}
	defer unlock()
	paths, _ := filepath.Glob(filepath.Join(folder, "*.sock")) // as in FindControl
	for _, path := range paths {
		_ = clearSocket(path) // what lives, or is something else, stays
	}
}

// ensurePrivate makes the folder, or checks that it is ours alone.
func ensurePrivate(folder string) error {
	stat, err := ensureFolder(folder, unix.Lstat)
	if err != nil {
		return err
	}
	return checkPrivate(folder, &stat)
}

// checkPrivate says in what a folder is not ours alone.
func checkPrivate(folder string, stat *unix.Stat_t) error {
	switch mode := uint32(stat.Mode); { //nolint:unconvert // it has 16 bits on macOS
	case mode&unix.S_IFMT != unix.S_IFDIR:
		return fmt.Errorf("control folder %s is no folder: remove it, or choose a path with --control", folder)
	case int(stat.Uid) != os.Geteuid():
		return fmt.Errorf("control folder %s belongs to another user (uid %d): choose a path with --control", folder, stat.Uid)
	case mode&0o077 != 0:
		return fmt.Errorf("control folder %s is open to other users (mode %04o): chmod 700 it, or choose a path with --control", folder, mode&0o7777)
	}
	return nil
}

// ensureSafe makes the folder, or checks that nobody but us and root can
// replace what is in it.
func ensureSafe(folder string) error {
	stat, err := ensureFolder(folder, unix.Stat)
	if err != nil {
		return err
	}
	switch mode := uint32(stat.Mode); { //nolint:unconvert // it has 16 bits on macOS
	case mode&unix.S_IFMT != unix.S_IFDIR:
		return fmt.Errorf("control socket: %s is no folder, see --control", folder)
	case int(stat.Uid) != os.Geteuid() && stat.Uid != 0:
		return fmt.Errorf("control socket: folder %s belongs to another user (uid %d), see --control", folder, stat.Uid)
	case mode&0o022 != 0 && mode&unix.S_ISVTX == 0:
		return fmt.Errorf("control socket: other users may write to folder %s (mode %04o): chmod 700 it, or choose another with --control", folder, mode&0o7777)
	}
	return nil
}

func ensureFolder(folder string, look func(string, *unix.Stat_t) error) (stat unix.Stat_t, err error) {
	err = os.Mkdir(folder, 0o700)
	if err == nil || errors.Is(err, fs.ErrExist) {
		err = look(folder, &stat)
	}
	if err != nil {
		err = fmt.Errorf("control folder %s: %w, see --control", folder, plain(err))
	}
	return stat, err
}

// plain drops the operation and the path, which the line already has.
func plain(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err
	}
	if operation, ok := errors.AsType[*net.OpError](err); ok {
		return operation.Err
	}
	return err
}

// bindControl makes the socket, in the place of one that a dead process has
// left. The folder is locked meanwhile: of two that start at once neither takes
// the other's new socket for a dead one.
func bindControl(path string) (*ControlListener, error) {
	if len(path) > maxControlPath {
		return nil, fmt.Errorf("control socket %s has a path of %d bytes, %d are allowed: choose a shorter one with --control", path, len(path), maxControlPath)
	}
	unlock, err := lockFolder(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := clearSocket(path); err != nil {
		return nil, err
	}
	config := net.ListenConfig{Control: ownerOnly}
	listener, err := config.Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, fmt.Errorf("control socket %s: %w, see --control", path, plain(err))
	}
	return ownControl(listener.(*net.UnixListener), path) //nolint:forcetypeassert // network unix has no other
}

// ownControl makes the file at path the listener's own.
func ownControl(listener *net.UnixListener, path string) (*ControlListener, error) {
	listener.SetUnlinkOnClose(false)
	// Where ownerOnly has no effect (macOS), the folder has kept others out.
	err := os.Chmod(path, 0o600)
	if err == nil {
		made, statErr := os.Lstat(path)
		if err = statErr; err == nil {
			return &ControlListener{UnixListener: listener, path: path, made: made}, nil
		}
	}
	return nil, errors.Join(fmt.Errorf("control socket %s: %w", path, plain(err)), listener.Close())
}

// ownerOnly has the file begin its life with mode 0600: on Linux bind takes the
// mode of the socket. The umask would be everybody's in this process.
func ownerOnly(_, _ string, conn syscall.RawConn) error {
	return conn.Control(func(fd uintptr) { _ = unix.Fchmod(int(fd), 0o600) })
}

// lockFolder keeps other starts away from a folder until unlock. The kernel
// drops the lock with the process.
func lockFolder(folder string) (unlock func(), err error) {
	file, err := os.Open(folder)
	if err != nil {
		return nil, fmt.Errorf("control folder %s: %w", folder, plain(err))
	}
	for deadline := time.Now().Add(folderLimit); ; time.Sleep(folderPoll) {
		err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { _ = file.Close() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) || time.Now().After(deadline) {
			_ = file.Close()
			return nil, fmt.Errorf("control folder %s cannot be locked: %w", folder, err)
		}
	}
}

// clearSocket removes what a dead process has left at path, and nothing else.
func clearSocket(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("control socket %s: %w", path, plain(err))
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("control socket: %s is there and no socket: remove it, or choose another path with --control", path)
	}
	living, pid := answers(path)
	if living {
		return &TakenError{Path: path, PID: pid}
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("control socket %s, left by a dead process: %w", path, plain(err))
	}
	return nil
}

// answers says whether somebody listens on a socket. Only a refusal proves that
// nobody does: a full backlog and a missing permission do not.
func answers(path string) (living bool, pid int) {
	conn, err := knock(path)
	if err != nil {
		return !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, fs.ErrNotExist), 0
	}
	defer conn.Close()
	if peer, ok := conn.(*net.UnixConn); ok {
		_, pid, _ = peerOf(peer)
	}
	return true, pid
}

// knock connects to a socket.
func knock(path string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: answerLimit}
	return dialer.DialContext(context.Background(), "unix", path)
}
