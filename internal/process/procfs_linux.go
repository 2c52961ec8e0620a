package process

import (
	"os"

	"github.com/cabrank/cabrank/internal/cgroup"
)

func readStat(pid int) (cgroup.Stat, bool) { return cgroup.ReadStat(os.DirFS("/"), pid) }

// Members returns the processes of a group, zombies included. It reads one
// file per process of the machine: for rare moments, not for polling.
func (g Group) Members() []int {
	var members []int
	eachProcess(func(pid int, of Group) {
		if of == g {
			members = append(members, pid)
		}
	})
	return members
}

// eachProcess calls each for every process of the machine, zombies included.
func eachProcess(each func(pid int, group Group)) {
	cgroup.EachProcess(os.DirFS("/"), func(pid int, s cgroup.Stat) { each(pid, Group(s.Group)) })
}
