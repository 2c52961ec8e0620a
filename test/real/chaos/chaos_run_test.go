//go:build real || soak

package chaos_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// The house of the chaos test. The load is for the slots that remain when one
// worker is away.
const (
	chaosWorkers, chaosSlots = 4, 4
	chaosShare               = 0.6 // of the slots that remain
	chaosDrain               = 10 * time.Second
	chaosSurge               = 1 // processes above chaosWorkers
)

// slotsThatRemain when one worker is away, beside the one upstream that is always
// there.
const slotsThatRemain = (chaosWorkers - 1 + 1) * chaosSlots

// chaosRate is the calls a second that keep chaosShare of the slots busy.
func chaosRate(slots int) float64 { return chaosShare * float64(slots) / meanSlotTime.Seconds() }

// A chaosPlan says what happens in a run. The moments and their order come from
// the seed.
type chaosPlan struct {
	seed                 uint64
	rounds               int // of all three phases, so that what else the machine does hits all alike
	calm, planned, storm time.Duration
	script               string             // a worker in Ruby, in testdata; empty: the one in Go
	tcp                  bool               // workers on ports, not on unix sockets
	recycle              int                // calls after which a worker is replaced
	changes              map[changeKind]int // in each phase of planned changes alone
	stormChanges         map[changeKind]int // in each phase of everything
	faults               map[faultKind]int  // beside them
	names                bool               // upstreams beside the workers, found by DNS
	limits               chaosLimits
}

// chaosRun is one run of the chaos test.
//
// Life: startChaos; phase as often as wanted; finish ends it and judges.
type chaosRun struct {
	*harness.Cabrank

	plan    chaosPlan
	ledger  string // path
	runtime string // folder of sockets
	faults  *chaosFaults
	changes *chaosChanges
	callers *openCallers
	phases  []chaosPhase
	before  harness.Footprint // with nothing under way, after the calm phase
}

// chaosPhase is a part of a run under load.
type chaosPhase struct {
	name  string
	calls []harness.ChaosCall
}

// startChaos starts cabrank over workers that keep a ledger, and callers.
func startChaos(t *testing.T, plan chaosPlan) *chaosRun {
	t.Helper()
	t.Logf("CHAOS_SEED=%d", plan.seed)
	dir, runtime := t.TempDir(), harness.ShortTempDir(t)
	r := &chaosRun{plan: plan, ledger: filepath.Join(dir, "ledger"), runtime: runtime}
	var names *chaosNames
	upstreams := ""
	if plan.names {
		names = startChaosNames(t, r.ledger)
		upstreams = names.config()
	}
	file := newChaosFile(t, dir, &plan, upstreams)
	socket := filepath.Join(runtime, "control.sock")
	args := slices.Concat([]string{"--config", file.path, "--control", socket, "--"}, plan.worker(t, r.ledger))
	r.Cabrank = harness.StartCabrankEnv(t, []string{"XDG_RUNTIME_DIR=" + runtime}, args...)
	r.faults = &chaosFaults{c: r.Cabrank, ledger: r.ledger, random: rand.New(rand.NewPCG(plan.seed, 2))}
	r.changes = &chaosChanges{
		r: r, operator: harness.NewOperator(t, socket), file: file, names: names,
		random: rand.New(rand.NewPCG(plan.seed, 3)), done: map[changeKind][]time.Duration{},
		counted: chaosCount{retired: map[string]float64{}},
	}
	r.changes.wanted.Store(chaosWorkers)
	r.changes.serving.Store(int64(r.PID))
	r.callers = dialOpenCallers(t, r.Addr)
	r.waitWhole(t)
	return r
}

// pid is the process that serves: another one after an upgrade.
func (r *chaosRun) pid() int { return int(r.changes.serving.Load()) }

// worker is the command line of the workers.
func (p *chaosPlan) worker(t *testing.T, ledger string) []string {
	t.Helper()
	if p.script == "" {
		return harness.ChaosWorker(t, ledger)
	}
	return []string{"ruby", filepath.Join(harness.Root(t), "test", "real", "chaos", "testdata", p.script), ledger}
}

// waitWhole waits until all workers are ready.
func (r *chaosRun) waitWhole(t *testing.T) {
	t.Helper()
	testkit.Eventually(t, 60*time.Second, "all workers to be ready", func() bool { return len(r.readyNow()) >= chaosWorkers })
}

// readyNow returns the processes that cabrank has called ready, live and are not
// stopped.
func (r *chaosRun) readyNow() []int {
	var pids []int
	for line := range strings.Lines(r.Log()) {
		if !strings.Contains(line, `"worker ready"`) {
			continue
		}
		_, behind, _ := strings.Cut(line, `"pid":`)
		digits, _, _ := strings.Cut(behind, ",")
		pid, err := strconv.Atoi(digits)
		if err == nil && harness.Alive(pid) && harness.StateOf(pid) != 'T' && !slices.Contains(pids, pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// phase has calls made for at least so long, and until all changes and faults
// of the phase are done.
func (r *chaosRun) phase(t *testing.T, name string, lasts time.Duration, changes map[changeKind]int, faults map[faultKind]int) {
	t.Helper()
	random := rand.New(rand.NewPCG(r.plan.seed, uint64(4+len(r.phases))))
	planned, unplanned := schedule(random, lasts, changes), schedule(random, lasts, faults)
	load := r.callers.start(t, fmt.Sprintf("%s-%d", name, len(r.phases)), chaosRate(slotsThatRemain), random.Uint64())
	began := time.Now()
	var changing sync.WaitGroup
	changing.Go(func() {
		for _, next := range planned {
			<-time.After(time.Until(began.Add(next.at)))
			err := r.changes.do(next.kind)
			testkit.Want(t, err == nil, "phase %s, %v: %s: %v", name, next.at.Round(time.Millisecond), next.kind, err)
		}
	})
	for _, next := range unplanned {
		<-time.After(time.Until(began.Add(next.at)))
		r.waitWhole(t) // one fault at a time: so many slots remain as the load is for
		r.faults.do(t, next.kind)
	}
	changing.Wait()
	<-time.After(time.Until(began.Add(lasts)))
	r.waitWhole(t)
	r.phases = append(r.phases, chaosPhase{name, load.stop()})
}

// A moment is when something of a schedule is due.
type moment[K ~string] struct {
	at   time.Duration
	kind K
}

// schedule spreads so many of each kind over a time, in random order and with
// random gaps, all of it given by random alone.
func schedule[K ~string](random *rand.Rand, lasts time.Duration, counts map[K]int) []moment[K] {
	var all []moment[K]
	for kind, count := range counts {
		all = append(all, slices.Repeat([]moment[K]{{kind: kind}}, count)...)
	}
	// Maps have no order, and the shuffle must begin from the same one.
	slices.SortFunc(all, func(a, b moment[K]) int { return strings.Compare(string(a.kind), string(b.kind)) })
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for i := range all {
		all[i].at = time.Duration((float64(i) + random.Float64()) / float64(len(all)) * float64(lasts))
	}
	return all
}

// runChaos is the whole of a run.
func runChaos(t *testing.T, plan chaosPlan) {
	t.Helper()
	r := startChaos(t, plan)
	r.phase(t, "warm-up", time.Second, nil, nil)
	r.before = harness.FootprintOf(r.Cabrank, r.pid())
	watch := r.watch(t)
	for round := range plan.rounds {
		r.phase(t, phaseCalm, plan.calm, nil, nil)
		alone, beside := maps.Clone(plan.changes), maps.Clone(plan.stormChanges)
		if round == plan.rounds/2 {
			alone[changeUpgrade], beside[changeUpSignal] = 1, 1
		}
		r.phase(t, phasePlanned, plan.planned, alone, nil)
		r.phase(t, phaseStorm, plan.storm, beside, plan.faults)
	}
	watch.stop()
	r.finish(t, watch)
}

// The phases that are judged.
const (
	phaseCalm    = "calm"
	phasePlanned = "planned changes alone"
	phaseStorm   = "everything"
)
