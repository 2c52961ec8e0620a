package testbed

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

// What is read agrees with what the kernel tells of this process otherwise.
func TestReadAlone(t *testing.T) {
	const near = 20 * time.Millisecond
	var before, after syscall.Rusage
	testkit.Must(t, syscall.Getrusage(syscall.RUSAGE_SELF, &before))
	one, err := ReadAlone(os.Getpid())
	testkit.Must(t, err)
	testkit.Must(t, syscall.Getrusage(syscall.RUSAGE_SELF, &after))
	least, most := cpuOf(before)-near, cpuOf(after)+near
	testkit.Want(t, one.CPU >= least && one.CPU <= most, "CPU %v, want %v to %v", one.CPU, least, most)
	if one.RSS < 1<<20 || one.RSS > one.PeakRSS || one.PeakRSS > 10<<30 {
		t.Errorf("got %+v", one)
	}
}

func cpuOf(u syscall.Rusage) time.Duration { return time.Duration(u.Utime.Nano() + u.Stime.Nano()) }

// A process counts with what it has started, also with what has ended.
func TestReadUse(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done'; echo; read line; :`)
	cmd.Env = append(os.Environ(), "PLACE=7")
	in, err := cmd.StdinPipe()
	testkit.Must(t, err)
	out, err := cmd.StdoutPipe()
	testkit.Must(t, err)
	testkit.Must(t, cmd.Start())
	if _, err := out.Read(make([]byte, 1)); err != nil { // the inner one has ended
		t.Fatal(err)
	}
	alone, err := ReadAlone(cmd.Process.Pid)
	testkit.Must(t, err)
	use, err := ReadUse(cmd.Process.Pid)
	testkit.Want(t, err == nil && use.CPU >= alone.CPU+2*userTick, "with what has ended %v, alone %v (%v)", use.CPU, alone.CPU, err)
	own, err := ReadUse(os.Getpid())
	testkit.Want(t, err == nil && own.RSS >= use.RSS, "got %+v, %v", own, err)
	got := Children(os.Getpid(), "PLACE")
	testkit.Want(t, len(got) == 1 && got["7"] == cmd.Process.Pid, "children %v, want 7: %d", got, cmd.Process.Pid)
	in.Close()
	_ = cmd.Wait()
	if use, err := ReadUse(cmd.Process.Pid); err == nil || !strings.HasSuffix(err.Error(), "process "+strconv.Itoa(cmd.Process.Pid)+" has ended") {
		t.Errorf("a process that has ended uses %+v (%v)", use, err)
	}
}
