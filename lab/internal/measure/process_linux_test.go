package measure

import (
	"os"
	"testing"
	"time"
)

// The CPU that this process burns is seen, to the microsecond.
func TestReadProcess(t *testing.T) {
	from, err := ReadProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	to := from
	for to.CPU < from.CPU+20*time.Millisecond {
		if to, err = ReadProcess(os.Getpid()); err != nil {
			t.Fatal(err)
		}
	}
	if to.Switches == 0 || to.CPU%(10*time.Millisecond) == 0 {
		t.Errorf("got %+v", to)
	}
	if _, err := ReadProcess(1 << 30); err == nil {
		t.Error("a process that does not exist has CPU time")
	}
	if _, err := Take(0, Traffic{}, os.Getpid(), os.Getppid()); err != nil {
		t.Error(err)
	}
}

func TestParseRollup(t *testing.T) {
	text := "55d0-7ffd ---p 00000000 00:00 0    [rollup]\nRss:               15120 kB\nPss:                9001 kB\nPss_Dirty:          7 kB\nPss_File:         800 kB\n"
	if got := parseRollup(text); got != (Memory{15120, 9001, 800}) {
		t.Errorf("got %+v", got)
	}
}

func TestReadMemory(t *testing.T) {
	m, err := ReadMemory(os.Getpid())
	if err != nil || m.PSSKiB == 0 || m.RSSKiB < m.PSSKiB {
		t.Errorf("got %+v, %v", m, err)
	}
	if _, err := ReadMemory(1 << 30); err == nil {
		t.Error("a process that does not exist has memory")
	}
}
