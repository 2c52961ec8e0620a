package testbed

import (
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

const (
	mountsV1 = `32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu
33 31 0:30 / /sys/fs/cgroup/cpuacct rw - cgroup cgroup rw,cpuacct
41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
`
	mountsTogether = "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
	mountsV2       = "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
	scope          = "/user.slice/app.slice/run.scope"
)

// folders lists what there is, with the part of a name that is drawn left out.
func (k *kernel) have() (names []string) {
	for name := range maps.Keys(k.folders) {
		if i := strings.Index(name, prefix); i >= 0 {
			rest := name[i+len(prefix):]
			_, behind, below := strings.Cut(rest, "/")
			if name = name[:i] + "*"; below {
				name += "/" + behind
			}
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// used opens a tree, makes two groups and closes it; what was there in between is returned.
func used(t *testing.T, root fs.FS, k *kernel) (folders []string, one *Group) {
	t.Helper()
	before := k.have()
	tree, err := openGroups(root, k, os.Getpid())
	testkit.Must(t, err)
	one, err = tree.Group("worker-1", 0.25)
	var front *Group
	if err == nil {
		front, err = tree.Group("front", 0)
	}
	if err == nil {
		err = front.Prefer()
	}
	testkit.Must(t, err)
	if weights := k.folders[front.folders[0]]; k.v2 && weights["cpu.weight"] != "1000" || !k.v2 && weights["cpu.shares"] != "10240" {
		t.Errorf("weight: %v", weights)
	}
	use, counted := one.Read()
	want := (GroupUse{CPU: 2500 * time.Microsecond, Throttled: 3, ThrottledFor: 1500 * time.Microsecond})
	testkit.Want(t, use == want && counted, "use %+v (%t), want %+v", use, counted, want)
	folders = k.have()
	quotas := k.folders[one.folders[0]]
	if k.v2 && quotas["cpu.max"] != "25000 100000" || !k.v2 && quotas["cpu.cfs_quota_us"]+" "+quotas["cpu.cfs_period_us"] != "25000 100000" {
		t.Errorf("quota: %v", quotas)
	}
	tree.Close()
	after := k.have()
	testkit.Want(t, slices.Equal(after, before), "left %q, had %q", after, before)
	return slices.DeleteFunc(folders, func(name string) bool { return slices.Contains(before, name) }), one
}

func TestVersion1(t *testing.T) {
	k := &kernel{folders: map[string]map[string]string{}}
	k.addFolder("/sys/fs/cgroup/cpu", "1\n2\n", "")
	k.addFolder("/sys/fs/cgroup/cpu/docker", "7\n", "")
	k.addFolder("/sys/fs/cgroup/cpuacct", "1\n", "")
	folders, one := used(t, proc(mountsV1, "2:cpuacct:/\n1:cpu:/docker\n0::/\n"), k)
	if want := []string{
		"/sys/fs/cgroup/cpu/docker/*", "/sys/fs/cgroup/cpu/docker/*/front", "/sys/fs/cgroup/cpu/docker/*/worker-1",
		"/sys/fs/cgroup/cpuacct/*", "/sys/fs/cgroup/cpuacct/*/front", "/sys/fs/cgroup/cpuacct/*/worker-1",
	}; !slices.Equal(folders, want) {
		t.Errorf("made %q", folders)
	}
	command := one.Enter()
	testkit.Want(t, len(command) == 7 && command[6] == "--" && strings.HasSuffix(command[4], "/worker-1/cgroup.procs"),
		"enter: %q", command)
}

func TestVersion1Together(t *testing.T) {
	k := &kernel{folders: map[string]map[string]string{}}
	k.addFolder("/sys/fs/cgroup/cpu,cpuacct", "1\n", "")
	tree, err := openGroups(proc(mountsTogether, "4:cpu,cpuacct:/\n"), k, os.Getpid())
	testkit.Must(t, err)
	g, err := tree.Group("a", 0)
	testkit.Need(t, err == nil && len(g.folders) == 1, "%+v, %v", g, err)
}

func TestVersion2(t *testing.T) {
	for _, tc := range []struct {
		name   string
		groups map[string]string // what they allow below
		own    string
		locked []string
		want   string // where it is made
	}{
		{"root of the machine", map[string]string{"": ""}, "/", nil, "/sys/fs/cgroup/"},
		{"under systemd", map[string]string{"": "cpu memory"}, "/", nil, "/sys/fs/cgroup/"},
		{"beside a scope", map[string]string{
			"": "cpu memory", "/user.slice": "cpu", "/user.slice/app.slice": "cpu", scope: "",
		}, scope, []string{"", "/user.slice"}, "/sys/fs/cgroup/user.slice/app.slice/"},
		{"above what may not", map[string]string{
			"": "cpu", "/user.slice": "memory", "/user.slice/app.slice": "", scope: "",
		}, scope, nil, "/sys/fs/cgroup/"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			k := treeV2(tc.groups, tc.own, tc.locked)
			folders, _ := used(t, proc(mountsV2, "0::"+tc.own+"\n"), k)
			if want := []string{tc.want + "*", tc.want + "*/front", tc.want + "*/worker-1"}; !slices.Equal(folders, want) {
				t.Errorf("made %q, want %q", folders, want)
			}
		})
	}
}

func treeV2(groups map[string]string, own string, locked []string) *kernel {
	k := &kernel{v2: true, folders: map[string]map[string]string{}}
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		procs := ""
		if group == own || group == "" {
			procs = "1\n"
		}
		k.addFolder("/sys/fs/cgroup"+group, procs, groups[group])
	}
	for _, group := range locked {
		k.locked = append(k.locked, "/sys/fs/cgroup"+group)
	}
	return k
}

// Where nothing is allowed one line says what to do.
func TestRefused(t *testing.T) {
	v1 := &kernel{folders: map[string]map[string]string{}, locked: []string{"/sys/fs/cgroup/cpu"}}
	v1.addFolder("/sys/fs/cgroup/cpu", "1\n", "")
	container := treeV2(map[string]string{"": "", "/inner": ""}, "/inner", []string{"", "/inner"})
	for _, tc := range []struct {
		name string
		root fs.FS
		on   *kernel
		want string
	}{
		{"nothing", proc("", ""), v1, "this machine has no control groups for CPU"},
		{"version 1", proc(mountsV1, "1:cpu:/\n"), v1, "no control group can be made here (open /sys/fs/cgroup/cpu: permission denied): run it as root"},
		{"version 2", proc(mountsV2, "0::/inner\n"), container, "permission denied): run it as root, or behind `systemd-run --user --scope -p Delegate=yes`"},
	} {
		_, err := openGroups(tc.root, tc.on, os.Getpid())
		testkit.Want(t, err != nil && strings.Contains(err.Error(), tc.want) && !strings.Contains(err.Error(), "\n"),
			"%s: %v", tc.name, err)
	}
}

// What a killed run has left is removed by the next one; what still runs is not.
func TestSweep(t *testing.T) {
	k := &kernel{folders: map[string]map[string]string{}}
	k.addFolder("/sys/fs/cgroup/cpu", "1\n", "")
	const dead = "/sys/fs/cgroup/cpu/" + prefix + "1073741823-abc"
	for _, dir := range []string{dead, dead + "/worker-1", "/sys/fs/cgroup/cpu/" + prefix + "1-abc", "/sys/fs/cgroup/cpu/other"} {
		k.addFolder(dir, "", "")
	}
	tree, err := openGroups(proc(mountsV1, "1:cpu:/\n"), k, os.Getpid())
	testkit.Must(t, err)
	tree.Close()
	testkit.Want(t, k.folders[dead] == nil && len(k.folders) == 3, "there are %q", k.have())
}

func TestQuotaTooSmall(t *testing.T) {
	k := &kernel{folders: map[string]map[string]string{}}
	k.addFolder("/sys/fs/cgroup/cpu", "1\n", "")
	tree, err := openGroups(proc(mountsV1, "1:cpu:/\n"), k, os.Getpid())
	testkit.Must(t, err)
	_, err = tree.Group("a", 0.005)
	testkit.Want(t, err != nil && strings.Contains(err.Error(), "want 0.01 or more"), "got %v", err)
}
