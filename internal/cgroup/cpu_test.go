package cgroup

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/cabrank/cabrank/internal/testkit"
)

// tree makes a file system out of names and contents.
func tree(files ...string) fstest.MapFS {
	root := fstest.MapFS{}
	for i := 0; i < len(files); i += 2 {
		root[files[i]] = &fstest.MapFile{Data: []byte(files[i+1])}
	}
	return root
}

const (
	mountV2       = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
	mountV1       = "33 32 0:30 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
	mountMemoryV1 = "34 32 0:31 / /sys/fs/cgroup/memory rw shared:10 - cgroup cgroup rw,memory\n"
)

func TestUsableCPUs(t *testing.T) {
	tests := []struct {
		name string
		root fstest.MapFS
		want int
	}{
		{"no control groups", tree(), 8},
		{"v2, in a container", tree(selfFile, "0::/\n", mountsFile, mountV2, "sys/fs/cgroup/cpu.max", "200000 100000\n"), 2},
		{"v2, no quota", tree(selfFile, "0::/\n", mountsFile, mountV2, "sys/fs/cgroup/cpu.max", "max 100000\n"), 8},
		{"v2, a part is rounded up", tree(selfFile, "0::/\n", mountsFile, mountV2, "sys/fs/cgroup/cpu.max", "150000 100000\n"), 2},
		{"v2, less than one", tree(selfFile, "0::/\n", mountsFile, mountV2, "sys/fs/cgroup/cpu.max", "10000 100000\n"), 1},
		{"v2, more than the machine", tree(selfFile, "0::/\n", mountsFile, mountV2, "sys/fs/cgroup/cpu.max", "6400000 100000\n"), 8},
		{"v2, a group above binds", tree(selfFile, "0::/a.slice/b.scope\n", mountsFile, mountV2,
			"sys/fs/cgroup/a.slice/cpu.max", "300000 100000\n", "sys/fs/cgroup/a.slice/b.scope/cpu.max", "500000 100000\n"), 3},
		{"v2, group outside of the namespace", tree(selfFile, "0::/../other\n", mountsFile, mountV2, "sys/fs/cgroup/cpu.max", "400000 100000\n"), 4},
		{"v2, mounted below its root", tree(selfFile, "0::/docker/abc/init\n",
			mountsFile, "30 23 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n", "sys/fs/cgroup/cpu.max", "500000 100000\n"), 5},
		{"v1", tree(selfFile, "3:memory:/m\n2:cpu,cpuacct:/\n", mountsFile, mountV1+mountMemoryV1,
			"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "250000\n", "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n"), 3},
		{"v1, no quota", tree(selfFile, "2:cpu,cpuacct:/\n", mountsFile, mountV1,
			"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n", "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n"), 8},
		{"v1, the host's path in a container", tree(selfFile, "2:cpu,cpuacct:/docker/abc\n",
			mountsFile, "33 32 0:30 /docker/abc /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n",
			"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "50000\n", "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "50000\n"), 1},
		{"both versions, v1 has the controller", tree(selfFile, "2:cpu,cpuacct:/\n0::/\n", mountsFile, mountV2+mountV1,
			"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "600000\n", "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n"), 6},
		{"a space in the mount point", tree(selfFile, "0::/\n", mountsFile, "30 23 0:26 / /my\\040groups rw - cgroup2 cgroup2 rw\n",
			"my groups/cpu.max", "200000 100000\n"), 2},
		{"nonsense", tree(selfFile, "0::\nx\n:::::\n", mountsFile, mountV2+" - \n- - -\n", "sys/fs/cgroup/cpu.max", "0 0\n"), 8},
		{"huge numbers", tree(selfFile, "0::/\n", mountsFile, mountV2, "sys/fs/cgroup/cpu.max", "9223372036854775807 9223372036854775807\n"), 8},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			testkit.Equal(t, UsableCPUs(test.root, 8), test.want, "CPUs")
		})
	}
}

func TestUsableCPUsIsAtLeastOne(t *testing.T) {
	testkit.Equal(t, UsableCPUs(tree(), 0), 1, "CPUs")
}

// The file systems of /proc and /sys are not ours: nothing in them may make
// the start fail.
func FuzzUsableCPUs(f *testing.F) {
	f.Add("0::/a/b\n", mountV2, "100000 100000")
	f.Add("2:cpu:/../x\n", mountV1+strings.Repeat("/", 100), "max")
	f.Fuzz(func(t *testing.T, groups, mounts, quota string) {
		root := tree(selfFile, groups, mountsFile, mounts, "sys/fs/cgroup/cpu.max", quota)
		got := UsableCPUs(root, 4)
		testkit.Want(t, got >= 1 && got <= 4, "got %d CPUs of 4", got)
	})
}
