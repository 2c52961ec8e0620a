package testbed

import (
	"os"
	"syscall"

	"github.com/vishvananda/netlink"
)

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

// LoopbackUp does what `ip link set lo up` does.
func LoopbackUp() error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	return netlink.LinkSetUp(lo)
}
