package measure

import (
	"os"
	"slices"
	"testing"
	"time"
)

func TestParseStat(t *testing.T) {
	fields, err := parseStat("42 (a ) b) S 7 1 2 3 4 5 6 7 8 9 110 120 13 14")
	if err != nil || fields[0] != "S" || fields[1] != "7" || fields[11] != "110" || fields[12] != "120" {
		t.Errorf("got %q, %v", fields, err)
	}
	if _, err := parseStat("42 (a) S 7"); err == nil {
		t.Error("a short line was accepted")
	}
}

func TestParseHost(t *testing.T) {
	stat := "cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 100 20 300 5000 60 7 8 9 50 0\ncpu1 1 0 0 0 0 0 0 0 0 0\nintr 5 5 5 5 5 5 5 5 5\n"
	if got := parseBusy(stat); !slices.Equal(got, []float64{4.44, 0.01}) {
		t.Errorf("busy: got %v", got)
	}
	dev := "Inter-|   Receive\n face |bytes packets\n  eth0: 1 2 3\n    lo: 1234 56 0 0 0 0 0 0 1234 56\n"
	if bytes, packets := parseLoopback(dev); bytes != 1234 || packets != 56 {
		t.Errorf("loopback: got %d bytes, %d packets", bytes, packets)
	}
	if bytes, packets := parseLoopback(""); bytes != 0 || packets != 0 {
		t.Errorf("no loopback: got %d bytes, %d packets", bytes, packets)
	}
}

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
