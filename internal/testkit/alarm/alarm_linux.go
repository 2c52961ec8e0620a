// Package alarm waits for short times exactly. The runtime's own timers are
// exact to a millisecond only while the process is idle (the unit of
// epoll_wait); a timerfd wakes it like a socket, exact to microseconds.
package alarm

import (
	"errors"
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

// behind is how much later than the runtime's timer the timerfd goes off, so that
// the one is due when the other wakes the process.
const behind = 5 * time.Microsecond

// Sleep returns after d, or at once if d is not above 0. It waits for a timer of the runtime,
// which a busy scheduler looks at often; the timerfd wakes an idle one in time.
func (a *Alarm) Sleep(d time.Duration) error {
	if d <= 0 {
		return nil
	}
	// Nobody reads the timerfd: that it goes off ends the wait for descriptors, in
	// which an idle process spends its time.
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d + behind))}
	raw, err := a.file.SyscallConn()
	if err != nil {
		return err
	}
	var setErr error
	err = raw.Control(func(fd uintptr) { setErr = unix.TimerfdSettime(int(fd), 0, &spec, nil) })
	if err := errors.Join(err, setErr); err != nil {
		return err
	}
	time.Sleep(d)
	return nil
}

// Close ends the alarm.
func (a *Alarm) Close() { a.file.Close() }
