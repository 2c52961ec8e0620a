//go:build real || soak

package languages_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc/status"

	"github.com/cabrank/cabrank/examples/go/workpb"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// nestedSlots is how many threads each of the workers has whose calls are counted.
const nestedSlots = 8

// nestedRuns has two workers of a language whose handlers call a server of the same
// kind with a single thread, and pass on that it is busy in the words of a worker
// that refuses the call. It counts how often each of the calls ran.
func nestedRuns(t *testing.T, lang string, calls, inFlight int, flags ...string) {
	t.Helper()
	records := t.TempDir()
	script, err := filepath.Abs(filepath.Join("testdata", "nested_worker"))
	testkit.Must(t, err)
	threads := strconv.Itoa(nestedSlots)
	worker := map[string][]string{
		"ruby":   {"ruby", script + ".rb", records},
		"python": {"env", "POOL_SIZE=" + threads, "python3", script + ".py", records},
	}[lang]
	env := append(harness.LangEnv(t), "BACKEND="+nestedBackend(t, lang, script))
	args := slices.Concat([]string{"--workers", "2", "--slots", threads}, flags, []string{"--"}, worker)
	c := harness.StartCabrankEnv(t, env, args...)
	c.WaitReady(harness.LangBound)
	failed := callNested(t, workpb.NewWorkClient(harness.Dial(t, c.Addr)), calls, inFlight)
	busy := 0
	for _, n := range failed {
		busy += n
	}
	runs := readRuns(t, records)
	twice := 0
	for _, n := range runs {
		if n > 1 {
			twice++
		}
	}
	t.Logf("%s, %d calls, %d in flight: %d ran, %d of them more than once; answers other than OK: %v; slots %v; passed on %v, moved %v",
		lang, calls, inFlight, len(runs), twice, failed, c.Metric("cabrank_slots_usable"),
		c.Metric("cabrank_refusals_total", "reason", "refusal_passed_on"), c.Metric("cabrank_refusals_total", "reason", "refused_by_worker"))
	testkit.Want(t, twice == 0, "%d of %d calls ran more than once", twice, calls)
	testkit.Want(t, busy != 0, "the server behind was never busy, so the test proves nothing")
}

// nestedBackend starts a server with one thread, and returns its address.
func nestedBackend(t *testing.T, lang, script string) string {
	t.Helper()
	if lang == "ruby" {
		return harness.StartLangWorker(t, lang, "RAILS_MAX_THREADS=1")
	}
	return harness.StartWorkerProcess(t, []string{"POOL_SIZE=1", "CABRANK_WORKER=backend"}, []string{"python3", script + ".py", t.TempDir()})
}

// callNested makes calls with numbers from 1 on and counts those that failed, by code
// and message.
func callNested(t *testing.T, client workpb.WorkClient, calls, inFlight int) map[string]int {
	t.Helper()
	var (
		callers sync.WaitGroup
		begun   atomic.Int64
		mu      sync.Mutex
	)
	failed := map[string]int{} // guarded by mu
	for range inFlight {
		callers.Go(func() {
			for n := begun.Add(1); n <= int64(calls); n = begun.Add(1) {
				ctx, cancel := context.WithTimeout(t.Context(), harness.CallBound)
				_, err := client.Io(ctx, &workpb.IoRequest{Millis: uint32(n)})
				cancel()
				if err != nil {
					mu.Lock()
					failed[fmt.Sprintf("%v: %s", status.Code(err), status.Convert(err).Message())]++
					mu.Unlock()
				}
			}
		})
	}
	callers.Wait()
	return failed
}

// readRuns counts the lines of all records.
func readRuns(t *testing.T, dir string) map[string]int {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	testkit.Must(t, err)
	runs := map[string]int{}
	for _, name := range files {
		f, err := os.Open(name)
		testkit.Must(t, err)
		for lines := bufio.NewScanner(f); lines.Scan(); {
			runs[lines.Text()]++
		}
		_ = f.Close()
	}
	return runs
}
