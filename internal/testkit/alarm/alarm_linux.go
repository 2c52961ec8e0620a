// Package alarm waits for short times exactly. The runtime's own timers are
// exact to a millisecond only while the process is idle (the unit of
// epoll_wait); a timerfd wakes it like a socket, exact to microseconds.
//
// Which way to wait depends on what else the process does. Sleep is for one in which
// many goroutines are ready to run, such as those that each make a call with grpc-go.
// Wait is for one that does its work between two waits: workers that only sleep, and
// the raw client on a core of its own. There calls were sent within 0.07 to 0.7 ms with
// Wait and within 0.8 to 1.0 ms with Sleep (p99 of the lag, at 20,000 calls per second).
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

// Wait returns after d, or at once if d is not above 0. It is exact in a process that
// is often idle: while goroutines are always ready to run, the runtime looks at
// descriptors every 10 ms only.
func (a *Alarm) Wait(d time.Duration) error {
	if d <= 0 {
		return nil
	}
	if err := a.set(d); err != nil {
		return err
	}
	var expirations [8]byte
	_, err := a.file.Read(expirations[:])
	return err
}

// behind is how much later than the runtime's timer the timerfd goes off, so that
// the one is due when the other wakes the process.
const behind = 5 * time.Microsecond

// Sleep returns after d, or at once if d is not above 0. It is exact in a process that
// is busy, too: it waits for a timer of the runtime, which a busy scheduler looks at
// often; the timerfd wakes an idle one in time. It costs an idle process some 15 µs of
// lateness over Wait.
func (a *Alarm) Sleep(d time.Duration) error {
	if d <= 0 {
		return nil
	}
	// Nobody reads the timerfd: that it goes off ends the wait for descriptors, in
	// which an idle process spends its time.
	if err := a.set(d + behind); err != nil {
		return err
	}
	time.Sleep(d)
	return nil
}

// set has the timerfd go off after d.
func (a *Alarm) set(d time.Duration) error {
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}
	raw, err := a.file.SyscallConn()
	if err != nil {
		return err
	}
	var setErr error
	if err := raw.Control(func(fd uintptr) { setErr = unix.TimerfdSettime(int(fd), 0, &spec, nil) }); err != nil {
		return err
	}
	return setErr
}

// Close ends the alarm.
func (a *Alarm) Close() { a.file.Close() }
