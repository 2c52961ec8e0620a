//go:build real || soak

package chaos_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// print writes the tables of a run to the test's log, and to the file that
// CHAOS_REPORT names.
func (v *chaosVerdict) print() {
	v.t.Helper()
	var out strings.Builder
	fmt.Fprintf(&out, "seed %d, %d workers of %d slots, %.0f calls/s\n\n", v.plan.seed, chaosWorkers, chaosSlots, chaosRate(slotsThatRemain))
	v.printPhases(&out)
	v.printEvents(&out)
	fmt.Fprint(&out, "\n| bar | wanted | seen | |\n|---|---|---|---|\n")
	for _, row := range v.rows {
		mark := "held"
		if !row.held {
			mark = "**missed**"
		}
		fmt.Fprintf(&out, "| %s | %s | %s | %s |\n", row.bar, row.wanted, row.seen, mark)
	}
	v.t.Log("\n" + out.String())
	if path := os.Getenv("CHAOS_REPORT"); path != "" {
		err := os.WriteFile(path, []byte(out.String()), 0o600)
		testkit.Want(v.t, err == nil, "%v", err)
	}
}

func (v *chaosVerdict) printPhases(out *strings.Builder) {
	fmt.Fprint(out, "| phase | calls | streams | failed | unary p50 | p99 | max |\n|---|---|---|---|---|---|---|\n")
	for _, name := range []string{phaseCalm, phasePlanned, phaseStorm} {
		calls, streams, failed := 0, 0, 0
		for _, phase := range v.phases {
			for i := range phase.calls {
				if phase.name != name {
					continue
				}
				calls++
				if phase.calls[i].Kind.Streams() {
					streams++
				}
				if phase.calls[i].Err != nil {
					failed++
				}
			}
		}
		times := v.latencies(name, func(*harness.ChaosCall) bool { return true })
		fmt.Fprintf(out, "| %s | %d | %d | %d | %s | %s | %s |\n", name, calls, streams, failed,
			millis(percentile(times, 50)), millis(percentile(times, 99)), millis(percentile(times, 100)))
	}
}

func (v *chaosVerdict) printEvents(out *strings.Builder) {
	fmt.Fprint(out, "\n| event | times | longest |\n|---|---|---|\n")
	times := v.changes.times()
	for _, kind := range slices.Sorted(maps.Keys(times)) {
		fmt.Fprintf(out, "| %s | %d | %v |\n", kind, len(times[kind]), slices.Max(times[kind]).Round(time.Millisecond))
	}
	for _, reason := range slices.Sorted(maps.Keys(v.changes.counted.retired)) {
		fmt.Fprintf(out, "| worker retired: %s | %v | |\n", reason, v.changes.counted.retired[reason])
	}
	count := map[faultKind]int{}
	for i := range v.faults {
		count[v.faults[i].kind]++
	}
	for _, kind := range slices.Sorted(maps.Keys(count)) {
		fmt.Fprintf(out, "| %s | %d | |\n", kind, count[kind])
	}
}

// chaosFile is the configuration of a run. It belongs to one goroutine.
type chaosFile struct {
	path string
	base string // what never changes
}

// chaosConfig is what holds for all of a run; vary adds what changes.
const chaosConfig = `
workers: {count: %d, slots: %d, %s, min_ready: 2, max_surge: %d}
drain_timeout: %s
recycle: {calls: %d}
methods:
  /cabrank.example.v1.Work/Cpu: {idempotent: true, retries: 2}
  /cabrank.example.v1.Work/Count: {idempotent: true, retries: 2}
`

func newChaosFile(t *testing.T, dir string, plan *chaosPlan, more string) *chaosFile {
	t.Helper()
	f := &chaosFile{path: filepath.Join(dir, "cabrank.yml")}
	transport := "transport: unix"
	if plan.tcp {
		transport = fmt.Sprintf("start_port: %d", testkit.FreePorts(t, 4*chaosWorkers)) // two cabranks, spares, scales
	}
	f.base = fmt.Sprintf(chaosConfig, chaosWorkers, chaosSlots, transport, chaosSurge, chaosDrain, plan.recycle) + more
	testkit.Must(t, f.write(f.base))
	return f
}

func (f *chaosFile) write(text string) error { return os.WriteFile(f.path, []byte(text), 0o600) }

// vary changes settings that no call of the run may notice.
func (f *chaosFile) vary(random *rand.Rand) error {
	return f.write(f.base + fmt.Sprintf(`
queue: {length: %d, timeout: %ds}
stall_timeout: %ds
lanes:
  chat: {methods: [/cabrank.example.v1.Work/Chat], priority: %d}
limits: {calls: %d}
explain: %t
`, 500+random.IntN(1000), 20+random.IntN(20), 60+random.IntN(60),
		random.IntN(3), 1000+random.IntN(1000), random.IntN(2) == 0))
}

// spoil makes the file bad and returns what it was.
func (f *chaosFile) spoil() (good string, err error) {
	text, err := os.ReadFile(f.path)
	if err != nil {
		return "", err
	}
	return string(text), f.write(string(text) + "\nworkers_count: -1\n")
}
