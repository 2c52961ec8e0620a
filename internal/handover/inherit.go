package handover

import (
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Variables with the descriptors that a process inherits, and with the service manager
// that it reports to.
const (
	upgradeVariable = "CABRANK_UPGRADE_FD"

	listenPID   = "LISTEN_PID" // sd_listen_fds(3)
	listenFDs   = "LISTEN_FDS"
	listenNames = "LISTEN_FDNAMES"

	notifySocket = "NOTIFY_SOCKET" // sd_notify(3)
	watchdogTime = "WATCHDOG_USEC" // sd_watchdog_enabled(3)
	watchdogPID  = "WATCHDOG_PID"

	// firstInherited is the first descriptor that a service manager passes, and
	// the only one that Upgrade passes.
	firstInherited = 3
)

// Inherited is what a process has from the process that started it.
type Inherited struct {
	Listeners   *Listeners
	Predecessor *Predecessor // nil if this process is not a successor
	Notifier    *Notifier    // nil without a service manager that listens
	Environ     []string     // for the successor: the environment of this process
}

// Inherit takes the descriptors and variables that are meant for this process,
// and removes the variables: workers must neither report to the service manager
// nor take sockets that are not theirs. Call it before any child is started.
//
// Errors: one line about an invalid variable or descriptor.
func Inherit(log *slog.Logger) (*Inherited, error) {
	in := &Inherited{Listeners: &Listeners{}, Environ: os.Environ()}
	env := take(upgradeVariable, listenPID, listenFDs, listenNames, notifySocket, watchdogTime, watchdogPID)
	in.Environ = without(in.Environ, upgradeVariable, listenPID, listenFDs, listenNames, watchdogPID)
	in.Notifier = newNotifier(env, log)
	if number := env[upgradeVariable]; number != "" {
		file, err := inheritedFile(upgradeVariable, number)
		if err != nil {
			return nil, err
		}
		l, err := newLink(file)
		if err != nil {
			return nil, fmt.Errorf("%s is %s: %w", upgradeVariable, number, err)
		}
		in.Predecessor = newPredecessor(l)
		return in, nil
	}
	names, err := listenedNames(env, os.Getpid())
	if err != nil {
		return nil, err
	}
	for i, name := range names {
		file := inheritedDescriptor(firstInherited + i)
		if err := in.Listeners.give(&socket{name: name, manager: true}, file); err != nil {
			return nil, fmt.Errorf("%s is %s: %w", listenFDs, env[listenFDs], err)
		}
	}
	return in, nil
}

// take removes variables from the environment and returns their values.
func take(names ...string) map[string]string {
	values := make(map[string]string)
	for _, name := range names {
		values[name] = os.Getenv(name)
		_ = os.Unsetenv(name) // fails for invalid names only
	}
	return values
}

// without returns an environment without some variables.
func without(environ []string, names ...string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(names, name)
	})
}

// listenedNames returns the names of the descriptors that a service manager has
// passed to the process pid, in order; a descriptor without a name has an empty one.
// Source: sd_listen_fds(3).
func listenedNames(env map[string]string, pid int) ([]string, error) {
	if env[listenFDs] == "" || env[listenPID] != strconv.Itoa(pid) {
		return nil, nil // meant for another process
	}
	count, err := strconv.Atoi(env[listenFDs])
	if err != nil || count < 0 || count > maxSockets {
		return nil, fmt.Errorf("%s is %.20q: 0 to %d sockets are allowed", listenFDs, env[listenFDs], maxSockets)
	}
	names := make([]string, count)
	if env[listenNames] != "" {
		copy(names, strings.Split(env[listenNames], ":"))
	}
	return names, nil
}

// inheritedFile returns the file of a descriptor whose number is in a variable.
func inheritedFile(variable, number string) (*os.File, error) {
	fd, err := strconv.Atoi(number)
	if err != nil || fd < firstInherited {
		return nil, fmt.Errorf("%s is %.20q: the number of a descriptor from %d up is needed", variable, number, firstInherited)
	}
	return inheritedDescriptor(fd), nil
}

// inheritedDescriptor makes a file of a descriptor that this process was started with.
// No child gets it. The descriptor may not be open.
func inheritedDescriptor(fd int) *os.File {
	unix.CloseOnExec(fd)
	return os.NewFile(uintptr(fd), "descriptor "+strconv.Itoa(fd))
}
