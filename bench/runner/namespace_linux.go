package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// insideKey marks the process that measures, and says where it is: "private"
// or "shared" network.
const insideKey = "CABRANK_BENCH_NETWORK"

// inside says whether this process is the one that measures. In a namespace of
// its own it brings loopback up first.
func inside() bool {
	where := os.Getenv(insideKey)
	if where == "private" {
		if err := loopbackUp(); err != nil {
			fmt.Fprintln(os.Stderr, "bench: bring loopback up:", err)
			os.Exit(1)
		}
	}
	return where != ""
}

func network() string { return os.Getenv(insideKey) }

// reenter runs this command again on a core, in a network namespace of its
// own if that is allowed, and returns the exit status.
func reenter(core int) int {
	attr := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	if uid := os.Getuid(); uid != 0 {
		attr.Cloneflags |= syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: uid, Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	self, err := os.Executable()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 1
	}
	again := pinned(self, core, "private", attr)
	err = again.Start()
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOSPC) {
		fmt.Fprintf(os.Stderr, "bench: no network namespace of our own (%v): other traffic on loopback disturbs\n", err)
		again = pinned(self, core, "shared", nil)
		err = again.Start()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err, "(taskset is in the Debian package util-linux)")
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
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 1
	}
	return 0
}

func pinned(self string, core int, where string, attr *syscall.SysProcAttr) *exec.Cmd {
	c := exec.Command("taskset", append([]string{"-c", strconv.Itoa(core), self}, os.Args[1:]...)...)
	c.Env = append(os.Environ(), insideKey+"="+where)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	c.SysProcAttr = attr
	return c
}

// enoughFiles lets a process hold 10,000 connections on either side.
const enoughFiles = 24_000

// raiseFiles raises the limit of open files for this process and those that it
// starts, as far as it may, and returns it.
func raiseFiles() (uint64, error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, err
	}
	// Set it even if it is high enough: Go has raised its own and gives children
	// the old one, unless somebody sets it.
	wanted := max(limit.Max, enoughFiles)
	err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: wanted, Max: wanted})
	if err == nil {
		return wanted, nil
	}
	limit.Cur = limit.Max // above it only root may
	return limit.Max, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit)
}

// loopbackUp sets the flag that `ip link set lo up` sets.
func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd) //nolint:errcheck // nothing is left to lose
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo)
}
