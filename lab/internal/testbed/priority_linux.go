package testbed

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	// highest is the nice value of who goes before all others.
	highest = -20
	// sessionNice is where the kernel keeps that of a session (sched(7),
	// autogroup), as "/autogroup-17 nice 0".
	sessionNice = "/proc/self/autogroup"
)

// RaisePriority has this process, and all that it starts from now on, go
// before others on the machine, which disturb less then. Where the kernel
// groups sessions nice values are compared within one only, so the session
// goes up, too, until it is put back. It returns what was allowed, in words.
func RaisePriority() (done string, putBack func()) {
	done, putBack = "ordinary", func() {}
	if a, err := unix.SchedGetAttr(0, 0); err == nil && a.Policy != unix.SCHED_NORMAL {
		return fmt.Sprintf("real-time (policy %d, priority %d)", a.Policy, a.Priority), putBack // by chrt(1): nothing to add
	}
	threads, err := filepath.Glob("/proc/self/task/*")
	for _, path := range threads { // setpriority(2) is about one thread
		id, _ := strconv.Atoi(filepath.Base(path))
		if err == nil {
			err = unix.Setpriority(unix.PRIO_PROCESS, id, highest)
		}
	}
	if err != nil {
		return done, putBack
	}
	done = "nice " + strconv.Itoa(highest)
	before := strings.Fields(firstLine(sessionNice))
	if len(before) == 0 || setSession(strconv.Itoa(highest)) != nil {
		return done, putBack
	}
	return done + ", and of the session", func() { setSession(before[len(before)-1]) } //nolint:errcheck // it worked a moment ago
}

func setSession(nice string) error { return os.WriteFile(sessionNice, []byte(nice), 0) }
