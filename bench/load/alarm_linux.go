package main

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// alarm waits for short times. The runtime's own timers are exact to a
// millisecond only while the process is idle (the unit of epoll_wait); a
// timerfd wakes it like a socket, exact to microseconds.
type alarm struct{ file *os.File }

func newAlarm() (*alarm, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("timerfd: %w", err)
	}
	return &alarm{os.NewFile(uintptr(fd), "timer")}, nil
}

// wait returns after d, or at once if d is not above 0.
func (a *alarm) wait(d time.Duration) error {
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

func (a *alarm) close() { a.file.Close() }
