package cgroup

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

const (
	selfFile   = "proc/self/cgroup"
	mountsFile = "proc/self/mountinfo"
	groupA     = "sys/fs/cgroup/a/"
	groupB     = "sys/fs/cgroup/a/b/"
	memV1      = "sys/fs/cgroup/memory/"
)

func TestMemory(t *testing.T) {
	const none = "9223372036854771712\n" // how version 1 says that there is no limit
	tests := []struct {
		name  string
		files []string
		want  Memory
		found bool
	}{
		{"no control groups", nil, Memory{}, false},
		{"v2, no limit", []string{selfFile, "0::/a\n", mountsFile, mountV2, groupA + "memory.max", "max\n", groupA + "memory.current", "10\n"}, Memory{}, false},
		{"v2, without reclaimable cache", []string{selfFile, "0::/a\n", mountsFile, mountV2, groupA + "memory.max", "1000\n",
			groupA + "memory.current", "600\n", groupA + "memory.stat", "anon 100\ninactive_file_x 7\ninactive_file 150\n"}, Memory{1000, 450}, true},
		{"v2, slowed down before it is full", []string{selfFile, "0::/a\n", mountsFile, mountV2, groupA + "memory.max", "1000\n",
			groupA + "memory.high", "800\n", groupA + "memory.current", "600\n"}, Memory{800, 600}, true},
		{"v2, more cache than use", []string{selfFile, "0::/a\n", mountsFile, mountV2, groupA + "memory.max", "1000\n",
			groupA + "memory.current", "100\n", groupA + "memory.stat", "inactive_file 150\n"}, Memory{1000, 0}, true},
		{"v2, the tightest level binds", []string{selfFile, "0::/a/b\n", mountsFile, mountV2,
			groupA + "memory.max", "10000\n", groupA + "memory.current", "9900\n",
			groupB + "memory.max", "1000\n", groupB + "memory.current", "600\n"}, Memory{10000, 9900}, true},
		{"v2, use cannot be read", []string{selfFile, "0::/a\n", mountsFile, mountV2, groupA + "memory.max", "1000\n"}, Memory{}, false},
		{"v1", []string{selfFile, "2:cpu,cpuacct:/x\n3:memory:/\n", mountsFile, mountV1 + mountMemoryV1,
			memV1 + "memory.limit_in_bytes", "1000\n", memV1 + "memory.usage_in_bytes", "700\n",
			memV1 + "memory.stat", "inactive_file 1\ntotal_inactive_file 300\n"}, Memory{1000, 400}, true},
		{"v1, no limit", []string{selfFile, "3:memory:/\n", mountsFile, mountMemoryV1,
			memV1 + "memory.limit_in_bytes", none, memV1 + "memory.usage_in_bytes", "700\n"}, Memory{}, false},
		{"both versions, v1 has the controller", []string{selfFile, "3:memory:/\n0::/\n", mountsFile, mountV2 + mountMemoryV1,
			memV1 + "memory.limit_in_bytes", "1000\n", memV1 + "memory.usage_in_bytes", "700\n"}, Memory{1000, 700}, true},
		{"nonsense", []string{selfFile, "0::/a\n", mountsFile, mountV2, groupA + "memory.max", "-5\n", groupA + "memory.current", "x\n"}, Memory{}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, found := Find(tree(test.files...)).Memory()
			testkit.Want(t, got == test.want && found == test.found, "got %v, %t, want %v, %t", got, found, test.want, test.found)
		})
	}
}

// It is looked at every second: what is allocated for it is most of what an idle
// Cabrank allocates, and stays until the collector runs.
func TestLooksAtMemoryAreCheap(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		selfFile: "0::/a/b\n", mountsFile: mountV2,
		groupA + "memory.max": "max\n", groupA + "memory.high": "max\n",
		groupB + "memory.max": "1000\n", groupB + "memory.high": "max\n", groupB + "memory.current": "600\n",
		groupB + "memory.stat": strings.Repeat("something_else 1234567890\n", 60) + "inactive_file 100\n",
	} {
		name = filepath.Join(root, filepath.FromSlash(name))
		testkit.Must(t, os.MkdirAll(filepath.Dir(name), 0o700))
		testkit.Must(t, os.WriteFile(name, []byte(text), 0o600))
	}
	groups := Find(os.DirFS(root))
	const looks, most = 100, 8 << 10
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range looks {
		m, _ := groups.Memory()
		testkit.Need(t, m.Used == 500, "%d bytes are used, want 500", m.Used)
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / looks; each > most {
		t.Errorf("%d bytes for each look, want at most %d", each, most)
	} else {
		t.Logf("%d bytes for each look", each)
	}
}

func TestMemoryFree(t *testing.T) {
	testkit.Equal(t, (Memory{Limit: 10, Used: 4}).Free(), 6, "free")
	testkit.Equal(t, (Memory{Limit: 10, Used: 14}).Free(), 0, "free")
}

func TestOwnMemory(t *testing.T) {
	if bytes, known := OwnMemory(tree("proc/self/status", "VmRSS:\t 90 kB\nRssAnon:\t 50 kB\nRssFile:\t 40 kB\n")); bytes != 50<<10 || !known {
		t.Errorf("got %d, %t", bytes, known)
	}
	if _, known := OwnMemory(tree()); known {
		t.Error("without /proc it is known")
	}
}

func TestMachine(t *testing.T) {
	got, known := Machine(tree("proc/meminfo", "MemTotal:       1000 kB\nMemFree: 1 kB\nMemAvailable:    400 kB\n"))
	want := (Memory{1000 << 10, 600 << 10})
	testkit.Want(t, got == want && known, "got %v, %t, want %v", got, known, want)
	for _, text := range []string{"", "MemTotal: 10 kB\n", "MemTotal: 10\nMemAvailable: 1 kB\n"} {
		if _, known := Machine(tree("proc/meminfo", text)); known {
			t.Errorf("%q was enough", text)
		}
	}
}

func TestReadProcesses(t *testing.T) {
	stat := func(name, state, group, times string) string {
		return "1 (" + name + ") " + state + " 1 " + group + " 0 0 -1 0 0 0 0 0 " + times + " 20 0 1 0 5\n"
	}
	root := tree(
		"proc/10/stat", stat("ruby", "S", "10", "100 20 3 7"),
		"proc/11/stat", stat("a ) (b", "R", "10", "50 0 0 0"),
		"proc/12/stat", stat("dead", "Z", "10", "5000 0 0 0"),
		"proc/20/stat", stat("other", "S", "20", "1 1 1 1"),
		"proc/30/stat", stat("gone", "Z", "30", "1 1 1 1"),
		"proc/40/stat", "nonsense",
		"proc/self/stat", stat("self", "S", "10", "9 9 9 9"),
	)
	got := ReadProcesses(root, []int{10, 30})
	testkit.Want(t, len(got) == 1 && len(got[10].PIDs) == 2 && got[10].CPU == 180*tick,
		"got %v, want two processes of group 10 with 1.8 s", got)
	if got, known := ReadStat(root, 10); got != (Stat{'S', 10, 120 * tick, 10 * tick}) || !known {
		t.Errorf("got %+v, %v of the first", got, known)
	}
	for _, bad := range []string{stat("a", "T", "x", "1 2 3 4"), stat("a", "T", "7", "x 2 3 4"), stat("a", "T", "7", "1 2 3 x"), "42", "42 (a) T"} {
		if got, known := ReadStat(tree("proc/1/stat", bad), 1); known {
			t.Errorf("%q: got %+v", bad, got)
		}
	}
	none := ReadProcesses(tree(), []int{10})
	testkit.Want(t, len(none) == 0, "without /proc got %v", none)
}

func TestMemoryOfProcesses(t *testing.T) {
	root := tree(
		"proc/10/smaps_rollup", "00400000-7fff ---p 00000000 00:00 0 [rollup]\nRss:  900 kB\nPss:  100 kB\nPss_Dirty: 5 kB\n",
		"proc/10/status", "Name:\truby\nVmHWM:\t 999 kB\nVmRSS:\t     900 kB\n",
		"proc/11/status", "Name:\truby\nVmRSS:\t     50 kB\n",
	)
	for _, test := range []struct {
		name  string
		pids  []int
		want  int64
		known bool
	}{
		{"one: resident", []int{10}, 900 << 10, true},
		{"several: proportional where it can be read", []int{10, 11}, 150 << 10, true},
		{"one has gone", []int{11, 12}, 50 << 10, true},
		{"all have gone", []int{12}, 0, false},
		{"none", nil, 0, false},
	} {
		got, known := Processes{PIDs: test.pids}.Memory(root)
		testkit.Want(t, got == test.want && known == test.known,
			"%s: got %d, %t, want %d, %t", test.name, got, known, test.want, test.known)
	}
}

// Nothing in /proc and /sys may make the start fail.
func FuzzMemory(f *testing.F) {
	f.Add("0::/a/b\n", mountV2, "100000", "inactive_file 5", "1 (x) S 1 1 0 0 -1 0 0 0 0 0 1 2 3 4 0")
	f.Add("3:memory:/../x\n", mountMemoryV1+strings.Repeat("/", 100), "max", "MemTotal: 1 kB\nMemAvailable: 1 kB\nPss: 9999999999999999 kB", ") Z")
	f.Fuzz(func(t *testing.T, groups, mounted, number, fields, stat string) {
		root := tree(selfFile, groups, mountsFile, mounted, "proc/meminfo", fields, "proc/1/stat", stat, "proc/1/status", fields,
			"sys/fs/cgroup/memory.max", number, "sys/fs/cgroup/memory.current", number, "sys/fs/cgroup/memory.stat", fields)
		if m, found := Find(root).Memory(); found && (m.Limit <= 0 || m.Used < 0) {
			t.Errorf("got %v", m)
		}
		if m, known := Machine(root); known && (m.Limit <= 0 || m.Used < 0) {
			t.Errorf("got %v of the machine", m)
		}
		bytes, _ := (Processes{PIDs: []int{1}}).Memory(root)
		testkit.Want(t, bytes >= 0, "got %d bytes", bytes)
		got := ReadProcesses(root, []int{1})[1]
		testkit.Want(t, got.CPU >= 0, "got %v of CPU", got.CPU)
	})
}

func TestOOMKills(t *testing.T) {
	tests := []struct {
		name  string
		files []string
		want  int64
		known bool
	}{
		{"no control groups", nil, 0, false},
		{"v2", []string{selfFile, "0::/a/b\n", mountsFile, mountV2, groupB + "memory.events", "low 0\nhigh 7\nmax 9\noom 3\noom_kill 2\noom_group_kill 1\n", groupA + "memory.events", "oom_kill 5\n"}, 2, true},
		{"v2, without a controller of its own", []string{selfFile, "0::/a/b\n", mountsFile, mountV2, groupA + "memory.events", "oom 3\noom_kill 5\n"}, 5, true},
		{"v2, the root of all groups", []string{selfFile, "0::/\n", mountsFile, mountV2}, 0, false},
		{"v1", []string{selfFile, "3:memory:/\n", mountsFile, mountMemoryV1, memV1 + "memory.oom_control", "oom_kill_disable 1\nunder_oom 0\noom_kill 4\n"}, 4, true},
		{"v1, an old kernel", []string{selfFile, "3:memory:/\n", mountsFile, mountMemoryV1, memV1 + "memory.oom_control", "oom_kill_disable 1\nunder_oom 0\n"}, 0, false},
	}
	for _, test := range tests {
		if got, known := Find(tree(test.files...)).OOMKills(); got != test.want || known != test.known {
			t.Errorf("%s: %d, %v", test.name, got, known)
		}
	}
}
