// Package alarm waits for short times exactly. The runtime's own timers are
// exact to a millisecond only while the process is idle (the unit of
// epoll_wait); a timerfd wakes it like a socket, exact to microseconds.
package alarm

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Alarm is one timer.
//
// Concurrency: one goroutine at a time.
type Alarm struct{ file *os.File }

// New takes a descriptor, which Close gives back.
func New() (*Alarm, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("timerfd: %w", err)
	}
	return &Alarm{os.NewFile(uintptr(fd), "timer")}, nil
}

// Wait returns after d, or at once if d is not above 0.
func (a *Alarm) Wait(d time.Duration) error {
	if d <= 0 {
		return nil
	}
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}
	raw, err := a.file.SyscallConn()
	if err != nil {
		return err
	}
	var setErr error
	if err := raw.Control(func(fd uintptr) { setErr = unix.TimerfdSettime(int(fd), 0, &spec, nil) }); err != nil {
		return err
	}
	if setErr != nil {
		return setErr
	}
	var expirations [8]byte
	_, err = a.file.Read(expirations[:])
	return err
}

// Close ends the alarm.
func (a *Alarm) Close() { a.file.Close() }
