//go:build soak

package languages_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// A call that may have run is never sent again because of what the answer says: not
// when a handler passes on the words by which a worker refuses calls (R1).
func TestNestedRefusalsRunOnce(t *testing.T) {
	for _, lang := range []string{"ruby", "python"} {
		for _, inFlight := range []int{2 * nestedSlots, 4 * nestedSlots} {
			t.Run(fmt.Sprintf("%s, %d in flight", lang, inFlight), func(t *testing.T) {
				nestedRuns(t, lang, 10_000, inFlight)
			})
		}
	}
}

// A worker that refuses calls when its threads are busy, or late, refuses at most
// one call in 1,000 of 20 callers (R1).
func TestSoakRefusalsAreRare(t *testing.T) {
	const calls = 10_000
	threads := strconv.Itoa(nestedSlots)
	bounded, err := filepath.Abs(filepath.Join("testdata", "nested_worker.py"))
	testkit.Must(t, err)
	for lang, worker := range map[string][]string{
		"ruby":   harness.ReadLangExample(t, "ruby").Worker,
		"python": {"env", "POOL_SIZE=" + threads, "python3", bounded, t.TempDir()},
	} {
		t.Run(lang, func(t *testing.T) {
			c := harness.StartCabrankEnv(t, harness.LangEnv(t), slices.Concat([]string{"--workers", "1", "--slots", threads, "--"}, worker)...)
			c.WaitReady(harness.LangBound)
			failed := harness.CallCPU(t, harness.Dial(t, c.Addr), calls, 20)
			n := 0
			for _, of := range failed {
				n += of
			}
			t.Logf("%d of %d calls failed: %v", n, calls, failed)
			testkit.Want(t, n <= calls/1000, "%d of %d calls failed, want at most %d", n, calls, calls/1000)
		})
	}
}
