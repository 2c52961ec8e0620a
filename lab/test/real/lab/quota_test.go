//go:build real || soak

package lab_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/lab/internal/result"
	"github.com/cabrank/cabrank/lab/internal/rig"
	"github.com/cabrank/cabrank/lab/internal/scenario"
	"github.com/cabrank/cabrank/lab/internal/testbed"
	"github.com/cabrank/cabrank/test/real/harness"
)

// needGroups skips a test where the machine does not let groups be made.
func needGroups(t *testing.T) {
	t.Helper()
	tree, err := testbed.OpenGroups()
	if err != nil {
		t.Skip(err)
	}
	tree.Close()
}

// A worker gets no more than its quota, with all that it starts, and what it was held up
// is counted; the others are free. Nothing is left.
func TestQuotas(t *testing.T) {
	needGroups(t)
	before := ourGroups(t)
	spec := greeters(t, 2, scenario.FrontCabrank)
	spec.Workers[0].CPU, spec.Scale = 0.4, 0.5
	spec.Workers[0].Command = []string{"sh", "-c", "(while :; do :; done) & exec " + harness.CabrankBinary(t) + " demo worker"}
	t.Run("arm", func(t *testing.T) {
		r := start(t, spec)
		if notes := r.Notes(); len(notes) != 1 || !strings.HasPrefix(notes[0], "Quotas of CPU are 50 % of what the scenario says, so that one of ") {
			t.Errorf("notes: %q", notes)
		}
		began := time.Now()
		from := r.Usage()
		var used []result.Process
		testkit.Eventually(t, harness.Patience, "five periods are used up", func() bool {
			used = rig.Between(from, r.Usage())
			return used[0].Throttled >= 5
		})
		lasted := time.Since(began)
		one, other := used[0], used[1]
		testkit.Want(t, one.Quota == 0.2 && other.Quota == 0 && other.Throttled == 0 && one.ThrottledFor > 0, "%+v, %+v", one, other)
		testkit.Want(t, one.CPU <= (time.Duration(0.2*float64(lasted))+60*time.Millisecond),
			"the worker has used %v in %v, more than its quota", one.CPU, lasted)
		out, err := exec.Command("true").Output()
		if caller := r.Caller([]string{"cat", "/proc/self/cgroup"}); err == nil {
			out, err = exec.Command(caller[0], caller[1:]...).Output()
		}
		testkit.Want(t, err == nil && strings.Contains(string(out), "generator-1"), "a caller is in %s (%v)", out, err)
	})
	testkit.EqualList(t, ourGroups(t), before, "our groups, of which none is left")
}

// Workers that cabrank starts have a group each, also new ones.
func TestQuotasOfCabranksWorkers(t *testing.T) {
	needGroups(t)
	spec := greeters(t, 2, scenario.FrontCabrank)
	spec.Front.Starts = true
	for i := range spec.Workers {
		spec.Workers[i].CPU = 0.5
	}
	r := start(t, spec)
	do(t, r, scenario.Event{Do: scenario.DoRoll})
	awaitSpread(t, r, scenario.FrontCabrank, "worker-1", "worker-3")
	used := r.Usage()
	roles := rolesOf(used)
	testkit.Need(t, slices.Equal(roles, []string{"worker 1", "worker 2", "worker 3", "front", "controller"}), "roles %q", roles)
	for _, p := range used[:3] {
		testkit.Want(t, p.Quota == 0.5 && p.CPU > 0, "%+v", p)
	}
}

// ourGroups lists the groups of arms that there are.
func ourGroups(t *testing.T) (all []string) {
	t.Helper()
	for _, pattern := range []string{"/sys/fs/cgroup/cabrank-lab-*", "/sys/fs/cgroup/*/cabrank-lab-*"} {
		found, err := filepath.Glob(pattern)
		testkit.Must(t, err)
		for _, dir := range found {
			if info, err := os.Stat(dir); err == nil && info.IsDir() {
				all = append(all, dir)
			}
		}
	}
	return all
}
