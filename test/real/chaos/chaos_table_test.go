//go:build real || soak

package chaos_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

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
		if err := os.WriteFile(path, []byte(out.String()), 0o600); err != nil {
			v.t.Error(err)
		}
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
