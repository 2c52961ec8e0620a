package testbed

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/vishvananda/netlink"
)

// insideKey marks the process that measures, and says where it is: "private"
// or "shared" network.
const insideKey = "CABRANK_LAB_NETWORK"

// Inside says whether this process is the one that measures, by Reenter. In a
// namespace of its own it brings loopback up first.
func Inside() (bool, error) {
	where := os.Getenv(insideKey)
	if where == "private" {
		if err := LoopbackUp(); err != nil {
			return true, fmt.Errorf("bring loopback up: %w", err)
		}
	}
	return where != "", nil
}

func network() string { return os.Getenv(insideKey) }

// Reenter runs this command again on a core, in a network namespace of its
// own if that is allowed, and returns the exit status.
func Reenter(core int) (exit int) {
	attr := &syscall.SysProcAttr{}
	self, err := os.Executable()
	if err == nil {
		err = ownNetwork(attr)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "lab:", err)
		return 1
	}
	again := pinned(self, core, "private", attr)
	err = again.Start()
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOSPC) {
		fmt.Fprintf(os.Stderr, "lab: no network namespace of our own (%v): other traffic on loopback disturbs\n", err)
		again = pinned(self, core, "shared", nil)
		err = again.Start()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "lab:", err, "(taskset is in the Debian package util-linux)")
		return 1
	}
	ignored := make(chan os.Signal, 1)
	signal.Notify(ignored, os.Interrupt, syscall.SIGTERM) // the other process ends and reports
	go func() {
		for sig := range ignored {
			again.Process.Signal(sig) //nolint:errcheck // it may have ended
		}
	}()
	if err := again.Wait(); err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) && exit.ExitCode() > 0 {
			return exit.ExitCode()
		}
		fmt.Fprintln(os.Stderr, "lab:", err)
		return 1
	}
	return 0
}

// ownNetwork starts a process in a network namespace of its own and, for whom is not
// root, in a user namespace where it is.
func ownNetwork(attr *syscall.SysProcAttr) error {
	attr.Cloneflags = syscall.CLONE_NEWNET
	if uid := os.Getuid(); uid != 0 {
		attr.Cloneflags |= syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: uid, Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	return nil
}

func pinned(self string, core int, where string, attr *syscall.SysProcAttr) *exec.Cmd {
	c := exec.Command("taskset", append([]string{"-c", strconv.Itoa(core), self}, os.Args[1:]...)...)
	c.Env = append(os.Environ(), insideKey+"="+where)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	c.SysProcAttr = attr
	return c
}

// LoopbackUp does what `ip link set lo up` does.
func LoopbackUp() error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	return netlink.LinkSetUp(lo)
}
