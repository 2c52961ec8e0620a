//go:build real || soak

package workers_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// forkingPython forks a family that sleeps, and becomes the worker.
const forkingPython = `import os, sys, time
for _ in range(2):
    if os.fork() == 0:
        if os.fork() == 0:
            os.fork()
        time.sleep(1000)
os.execv(sys.argv[1], sys.argv[1:])
`

// After kill -9 of cabrank nothing of its workers is left, whoever stands
// between, and the next start on the same ports serves (R18).
func TestNothingIsLeftAfterKill9(t *testing.T) {
	worker := harness.FaultWorker(t)
	npm := npmPackage(t, worker)
	for _, test := range []struct {
		name      string
		command   []string
		processes int // of one worker, at least
	}{
		{"plain", worker, 1},
		{"shell that waits", []string{"sh", "-c", `"$0" "$@" & wait`, worker[0], worker[1]}, 2},
		{"npm start", []string{"npm", "start", "--silent", "--prefix", npm}, 2},
		{"forking python", append([]string{"python3", "-c", forkingPython}, worker...), 7},
	} {
		t.Run(test.name, func(t *testing.T) {
			const workers = 2
			flags := []string{"--workers", strconv.Itoa(workers), "--start-port", strconv.Itoa(testkit.FreePorts(t, 2*workers)), "--"}
			c := harness.StartCabrankEnv(t, harness.LangEnv(t), slices.Concat([]string{"--listen", testkit.FreeAddress(t)}, flags, test.command)...).Booted(workers)
			c.Wait(harness.Patience, "the whole family", func() bool { return len(c.Family()) >= 2+workers*test.processes })
			load := harness.StartLoad(t, c.Addr, 4, harness.ShortWork)
			load.WaitAnswered(t, "", 4)
			c.Kill()
			c.WaitNoneLeft(harness.Patience)
			load.Stop()

			again := harness.StartCabrankEnv(t, harness.LangEnv(t), slices.Concat([]string{"--listen", c.Addr}, flags, worker)...)
			harness.CallIo(t.Context(), harness.Dial(t, again.Addr), "again", 0).WantOK(t)
			again.Stop()
		})
	}
}

// kill -9 of cabrank while it changes: nothing is left, no hook either, and the
// next start with the same addresses serves, on the control socket too, and
// sweeps (R18, R19).
func TestNothingIsLeftAfterKill9During(t *testing.T) {
	for _, test := range []struct {
		name, command string
		env           []string
		sign          string // part of a command line that shows the moment
	}{
		{"roll", "restart", nil, harness.FaultWorkerRole},
		{"upgrade", "upgrade", nil, harness.FaultWorkerRole},
		{"hook", "restart", []string{"CABRANK_HOOKS={before_stop: sleep 1000}"}, "sleep 1000"},
	} {
		t.Run(test.name, func(t *testing.T) {
			runtime := harness.ShortTempDir(t)
			env := append(test.env, "XDG_RUNTIME_DIR="+runtime)
			o := harness.NewOperator(t, filepath.Join(runtime, "control.sock"))
			args := []string{"--listen", testkit.FreeAddress(t), "--control", o.Socket, "--workers", "2", "--transport", "unix", "--"}
			args = append(args, harness.FaultWorker(t, "-boot", "300ms")...)
			c := harness.StartCabrankEnv(t, env, args...).Booted(2)
			before := c.Family()
			load := harness.StartLoad(t, c.Addr, 4, harness.ShortWork)
			load.WaitAnswered(t, "", 4)
			commanded := make(chan struct{})
			go func() { // ends with cabrank
				defer close(commanded)
				_ = o.Run(harness.ChangeLimit, test.command) // cabrank is killed meanwhile
			}()
			c.Wait(harness.Patience, "a new process with "+test.sign, func() bool {
				return slices.ContainsFunc(c.Family(), func(pid int) bool {
					return !slices.Contains(before, pid) && strings.Contains(harness.Describe([]int{pid}), test.sign)
				})
			})
			c.Kill()
			c.WaitNoneLeft(harness.Patience)
			load.Stop()
			<-commanded

			again := harness.StartCabrankEnv(t, env[len(test.env):], args...)
			harness.CallIo(t.Context(), harness.Dial(t, again.Addr), "again", 0).WantOK(t)
			if s, err := o.Status(); err != nil || s.PID != again.PID {
				t.Errorf("the status after the next start: %+v, %v", s, err)
			}
			again.Stop()
			harness.WantEmpty(t, runtime)
		})
	}
}

// npmPackage makes a package whose start script runs the worker by a shell, as
// npm does.
func npmPackage(t *testing.T, worker []string) string {
	t.Helper()
	dir := t.TempDir()
	manifest := fmt.Sprintf(`{"name": "fault", "version": "1.0.0", "scripts": {"start": "%s %s; true"}}`, worker[0], worker[1])
	testkit.Must(t, os.WriteFile(filepath.Join(dir, "package.json"), []byte(manifest), 0o600))
	return dir
}

// Orphans of a worker become cabrank's children, and are reaped (R18).
func TestOrphansOfWorkersAreReaped(t *testing.T) {
	script := `i=0; while [ $i -lt 200 ]; do (true &); i=$((i+1)); done; exec "$0" "$@"`
	c := harness.StartFault(t, append([]string{"sh", "-c", script}, harness.FaultWorker(t)...), "--workers", "1").Booted(1)
	testkit.Eventually(t, harness.Patience, "no zombie under cabrank", func() bool { return zombiesOf(c.PID) == 0 })
	harness.CallIo(t.Context(), harness.Dial(t, c.Addr), "1", 0).WantOK(t)
	c.Stop()
}

// zombiesOf counts the dead children of a process that it has not waited for.
// Source: proc(5), the fields of stat behind the name are state and parent.
func zombiesOf(parent int) int {
	count := 0
	paths, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is well formed
	for _, path := range paths {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // gone meanwhile
		}
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if string(fields[0]) == "Z" && string(fields[1]) == strconv.Itoa(parent) {
			count++
		}
	}
	return count
}
