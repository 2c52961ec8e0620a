package service

import (
	"fmt"
	"log/slog"
	"math"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/cabrank/cabrank/internal/cgroup"
	"github.com/cabrank/cabrank/internal/testkit"
)

// machineWith is a file system of a container with so many MiB, of which all in it use
// so many, and this process so many of those.
func machineWith(v2 bool, limit, used, own int) fstest.MapFS {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	bytes := func(mib int) *fstest.MapFile { return file(fmt.Sprintln(mib << 20)) }
	root := fstest.MapFS{"proc/self/status": file(fmt.Sprintf("Name:\tcabrank\nRssAnon:\t %d kB\n", own<<10))}
	at := "sys/fs/cgroup/"
	if v2 {
		root["proc/self/cgroup"] = file("0::/\n")
		root["proc/self/mountinfo"] = file("30 23 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw\n")
		root[at+"memory.max"], root[at+"memory.current"] = bytes(limit), bytes(used)
		return root
	}
	root["proc/self/cgroup"] = file("3:memory:/\n")
	root["proc/self/mountinfo"] = file("34 32 0:31 / /sys/fs/cgroup rw shared:10 - cgroup cgroup rw,memory\n")
	root[at+"memory.limit_in_bytes"], root[at+"memory.usage_in_bytes"] = bytes(limit), bytes(used)
	return root
}

// What the workers leave of the container bounds the collector and the callers.
func TestContainerMemory(t *testing.T) {
	for name, tt := range map[string]struct {
		limit, used, own int
		wantOwn, wantUse int // MiB
	}{
		"nothing but cabrank":         {limit: 100, used: 20, own: 20, wantOwn: 95, wantUse: 52},
		"workers":                     {limit: 100, used: 60, own: 20, wantOwn: 55, wantUse: 26},
		"workers that take it all":    {limit: 100, used: 100, own: 8, wantOwn: 24, wantUse: 5},
		"a look in between":           {limit: 1000, used: 20, own: 30, wantOwn: 950, wantUse: 622},
		"room for all that is wanted": {limit: 10_000, used: 4000, own: 100, wantOwn: 5600, wantUse: 3722},
	} {
		t.Run(name, func(t *testing.T) {
			for _, v2 := range []bool{false, true} {
				c, set := testContainer(machineWith(v2, tt.limit, tt.used, tt.own))
				c.look()
				testkit.Equal(t, fmt.Sprint(set.own>>20, set.use>>20), fmt.Sprint(tt.wantOwn, tt.wantUse), "version 2 %t: MiB", v2)
			}
		})
	}
}

// A worker that has just ended is counted for one look more: what others use is read
// at another moment than what we do.
func TestContainerMemoryRises(t *testing.T) {
	c, set := testContainer(machineWith(true, 100, 60, 20))
	c.look()
	for i, want := range []int64{55, 75} {
		c.root = machineWith(true, 100, 40, 20)
		c.groups = cgroup.Find(c.root)
		c.look()
		if set.own>>20 != want {
			t.Errorf("look %d: %d MiB, want %d", i, set.own>>20, want)
		}
	}
}

// Without a limit nothing is done, and what the environment says about the collector
// stays as it is.
func TestContainerMemoryIsLeftAlone(t *testing.T) {
	c, set := testContainer(fstest.MapFS{})
	c.look()
	testkit.Want(t, set.own == 0 && set.use == 0, "limits were set: %+v", *set)
	c, set = testContainer(machineWith(true, 100, 20, 20))
	c.given = 40 << 20
	c.look()
	if set.own != 0 || set.use>>20 != 16 {
		t.Errorf("with a GOMEMLIMIT of 40 MiB: %+v", *set)
	}
}

// The log has one line for a limit.
func TestContainerMemoryIsTold(t *testing.T) {
	var told strings.Builder
	c, _ := testContainer(machineWith(true, 100, 20, 20))
	c.log = slog.New(slog.NewTextHandler(&told, nil))
	for range 3 {
		c.others++ // another result each time
		c.look()
	}
	testkit.Equal(t, strings.Count(told.String(), "keeping within the memory of the container"), 1, "times told, in\n%s", told.String())
}

type memorySet struct{ own, use int64 }

func testContainer(root fstest.MapFS) (*container, *memorySet) {
	set := new(memorySet)
	return &container{
		root: root, groups: cgroup.Find(root), log: slog.New(slog.DiscardHandler), given: math.MaxInt64,
		limitOwn: func(bytes int64) { set.own = bytes },
		limitUse: func(bytes int64) { set.use = bytes },
	}, set
}

// Memory is read seldom, and anew when there is a new worker.
func TestFootprints(t *testing.T) {
	proc := fstest.MapFS{}
	worker := func(pid, kibibytes string) {
		proc["proc/"+pid+"/stat"] = &fstest.MapFile{Data: []byte(pid + " (w) S 1 " + pid + " " + pid + " 0 -1 0 0 0 0 0 5 5 0 0 20 0 1 0 100 0 0\n")}
		proc["proc/"+pid+"/status"] = &fstest.MapFile{Data: []byte("Name:\tw\nVmRSS:\t" + kibibytes + " kB\n")}
	}
	worker("11", "100")
	f := &footprints{root: proc}
	for _, step := range []struct {
		at     time.Duration
		change func()
		groups []int
		want   int64
	}{
		{0, func() {}, []int{11}, 100 << 10},
		{time.Second, func() { worker("11", "200") }, []int{11}, 100 << 10},
		{2 * time.Second, func() { worker("12", "1") }, []int{11, 12}, 200 << 10},
		{3 * time.Second, func() { worker("11", "300") }, []int{11, 12}, 200 << 10},
		{8 * time.Second, func() {}, []int{11}, 300 << 10},
	} {
		step.change()
		testkit.Equal(t, f.of(step.groups, time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC).Add(step.at))[11], step.want,
			"after %v: bytes", step.at)
	}
	got := f.of([]int{99}, time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC).Add(time.Hour))
	testkit.Want(t, len(got) == 0, "of nobody: %v", got)
}
