package handover

import (
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

// notifyLimit bounds a datagram to a service manager that does not read. Its queue may
// have room for only 10; a lost READY would never be repeated.
const notifyLimit = 5 * time.Second

// stoppingLimit is the same for STOPPING, which the manager would notice anyway: a stop
// does not wait for it.
const stoppingLimit = 200 * time.Millisecond

// Notifier tells the service manager the state of the service.
//
// A nil Notifier does nothing. An error is logged once and has no other effect. All
// methods may be called from any goroutine.
// Source: sd_notify(3).
type Notifier struct {
	address  *net.UnixAddr
	watchdog time.Duration // 0: not wanted
	log      *slog.Logger
	failed   sync.Once
}

func newNotifier(env map[string]string, log *slog.Logger) *Notifier {
	path := env[notifySocket]
	// An absolute path, or an abstract name after @, which net understands.
	if !strings.HasPrefix(path, "/") && !strings.HasPrefix(path, "@") {
		return nil
	}
	n := &Notifier{address: &net.UnixAddr{Name: path, Net: "unixgram"}, log: log}
	// WATCHDOG_PID names the first process; its successors take over its duties, so it
	// is ignored.
	if usec, err := strconv.ParseInt(env[watchdogTime], 10, 64); err == nil && usec > 0 {
		n.watchdog = time.Duration(usec) * time.Microsecond
	}
	return n
}

// Ready says that calls are served.
func (n *Notifier) Ready() { n.tell("READY=1") }

// Reloading says that the configuration is read again; Ready must follow.
func (n *Notifier) Reloading() {
	// A manager of Type=notify-reload also needs the time, or it waits.
	n.tell("RELOADING=1\nMONOTONIC_USEC=" + strconv.FormatInt(monotonic().Microseconds(), 10))
}

// Stopping says that the service ends.
func (n *Notifier) Stopping() { n.tellWithin(stoppingLimit, "STOPPING=1") }

// MainPID makes another process the main one. The present main process must say it; from
// then on the manager listens to the other one.
func (n *Notifier) MainPID(pid int) { n.tell("MAINPID=" + strconv.Itoa(pid)) }

// Watch reports twice per interval of the manager's watchdog, as long as alive returns
// true, until stop is closed. Without a watchdog it returns at once.
func (n *Notifier) Watch(stop <-chan struct{}, alive func() bool) {
	if n == nil || n.watchdog == 0 {
		return
	}
	beat := time.NewTicker(n.watchdog / 2)
	defer beat.Stop()
	for {
		if alive() {
			n.tell("WATCHDOG=1")
		}
		select {
		case <-beat.C:
		case <-stop:
			return
		}
	}
}

func (n *Notifier) tell(state string) { n.tellWithin(notifyLimit, state) }

func (n *Notifier) tellWithin(limit time.Duration, state string) {
	if n == nil {
		return
	}
	if err := n.send(limit, state); err != nil {
		n.failed.Do(func() { n.log.Warn("service manager cannot be told", "error", err) })
	}
}

func (n *Notifier) send(limit time.Duration, state string) error {
	conn, err := net.DialUnix("unixgram", nil, n.address)
	if err != nil {
		return fmt.Errorf("%s: %w", notifySocket, err)
	}
	defer func() { _ = conn.Close() }() // a datagram is sent or not
	if err := conn.SetWriteDeadline(time.Now().Add(limit)); err != nil {
		return err
	}
	_, err = conn.Write([]byte(state))
	return err
}
