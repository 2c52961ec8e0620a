package service

import (
	"testing"
	"testing/fstest"
	"time"
)

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
		if got := f.of(step.groups, time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC).Add(step.at))[11]; got != step.want {
			t.Errorf("after %v: %d bytes, want %d", step.at, got, step.want)
		}
	}
	if got := f.of([]int{99}, time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC).Add(time.Hour)); len(got) != 0 {
		t.Errorf("of nobody: %v", got)
	}
}
