// Package trial runs a scenario: block after block, in the order that package stats
// draws, and keeps what was measured as it goes.
//
// For each block it has the processes of the arm started (Starter), starts the
// generators (package agent) with a part of the plan each, does to the arm what the load
// says, and writes the figures into run.json and the record into a file of its own. It
// never holds records of more than one block. When its context ends, the calls under way
// have their grace, and what was measured is kept.
//
// An arm whose front is "simulated" is a block of the same load, with the same arrivals and
// the same work, sent through the rank itself in virtual time (package ranksim). Before
// the first such block one of its workers is started and called with all slots busy and
// nobody waiting: latencies under load have waiting in them, which would be counted twice.
// What it does not know: that one call makes the next one slow, and that workers share
// processors in other ways than that one did.
//
// It draws no conclusion: that is for packages stats and report.
package trial

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cabrank/cabrank/lab/internal/agent"
	"github.com/cabrank/cabrank/lab/internal/result"
	"github.com/cabrank/cabrank/lab/internal/scenario"
	"github.com/cabrank/cabrank/lab/internal/stats"
	"github.com/cabrank/cabrank/lab/internal/testbed"
)

// Stand is an arm that runs: rig.Rig is one, and explains the methods.
type Stand interface { //nolint:interfacebloat // the life of processes
	Target() string                                                   // what callers dial
	Caller(command []string) []string                                 // starts a process that can call it
	Usage() []result.Process                                          // of each since it began
	Do(ctx context.Context, e scenario.Event) (did string, err error) // returns when it is over
	Notes() []string                                                  // what the machine did not allow
	Close()                                                           // leaves nothing
}

// Starter starts the processes of an arm as they are at a load. When it returns all of
// them answer.
//
// Errors: one line that says what to do; nothing is left then.
type Starter func(ctx context.Context, arm *scenario.Arm, load *scenario.Load) (Stand, error)

// Options are what to run, and with what.
type Options struct {
	Scenario *scenario.Scenario
	Folder   string // where the results go; it is made
	// Kept is the run of the same scenario that is there already: its rounds that are
	// marked or missing are run again, as further rounds. nil begins a new one.
	Kept    *result.Run
	Version string   // that of cabrank
	Command string   // what was typed
	Machine []string // where this runs, in a sentence or some
	Agent   []string // the command of a generator, which Hire starts
	Hire    func(command []string, job agent.Job) (Generator, error)
	Start   Starter
	// Limits are those of the machine: what an arm needs beyond them is not measured, for
	// they would be measured in its place.
	Limits testbed.Limits
	// Noise begins to measure what others use; what it returns says how many cores it
	// was. It may be nil.
	Noise func() func() float64
	Tell  func(Progress) // is called when a block begins, and when it has ended; it may be nil

	learnTime time.Duration // how long a worker of a simulated arm is called; shorter in tests
}

// Progress is how a run goes.
type Progress struct {
	Block, Blocks int // which one is under way, from 1 on, of how many
	Arm, Load     string
	Round         int
	Left          time.Duration // about how long the run goes on
	Done          *result.Block // when it has ended
}

type cell struct {
	arm          *scenario.Arm
	load         *scenario.Load
	round, order int // from 1
	seed         uint64
}

// Run runs a scenario. When ctx ends, it returns what was measured until then, marked as
// cut short. The files are written in any case in which a block has been measured.
//
// Errors: one line. Without a block that was measured, nothing is left in the folder.
func Run(ctx context.Context, o Options) (*result.Run, error) {
	o.learnTime = cmp.Or(o.learnTime, measureTime)
	t := &trial{
		Options: o, run: newRun(o), out: map[string]string{}, took: map[[2]string]time.Duration{},
		known: map[string]*service{}, since: time.Now(),
	}
	if o.Kept != nil {
		if err := t.goOn(); err != nil {
			return nil, err
		}
	}
	made, err := result.MakeFolder(filepath.Join(o.Folder, result.RawFolder))
	if err != nil {
		return nil, err
	}
	t.cells = t.arrange()
	if err := t.more(); err != nil {
		return nil, err
	}
	t.run.Planned = len(t.run.Blocks) + len(t.cells)
	err = t.blocks(ctx)
	t.run.Took = t.elapsed()
	t.run.LeftOut = together(t.run.LeftOut)
	if len(t.run.Blocks) == 0 {
		for _, path := range made {
			_ = os.Remove(path) // not empty: it is somebody else's now
		}
		switch {
		case err != nil:
			return nil, err
		case ctx.Err() != nil:
			return nil, errors.New("ended before anything was measured")
		default:
			return nil, fmt.Errorf("nothing can be measured here: %s", strings.Join(t.run.LeftOut, " "))
		}
	}
	t.run.Cut = t.measuredMore() < len(t.cells) || t.run.Cut
	if err != nil {
		t.note("Ended early: " + err.Error() + ".")
	}
	return t.run, errors.Join(err, result.Save(o.Folder, t.run))
}

func newRun(o Options) *result.Run {
	s := o.Scenario
	r := &result.Run{
		Scenario: s.Name, About: s.About, Question: s.Question, Text: s.Text, Quick: s.IsQuick,
		Seed: s.Seed, Rounds: s.Rounds, Limit: s.Limit, Began: time.Now(), Version: o.Version, Command: o.Command, Machine: o.Machine,
		Claims: s.Claims(), Bars: s.Bars, Columns: s.Columns,
	}
	for i := range s.Arms {
		r.Arms = append(r.Arms, result.Arm{Name: s.Arms[i].Name, About: s.Arms[i].About})
	}
	for i := range s.Loads {
		l := &s.Loads[i]
		x, unit := l.Place()
		r.Loads = append(r.Loads, result.Load{Name: l.Name, Plan: l.String(), X: x, Unit: unit, Open: l.Open()})
	}
	return r
}

type trial struct {
	Options

	run    *result.Run
	cells  []cell
	out    map[string]string           // why an optional arm cannot be started, by name
	took   map[[2]string]time.Duration // of the last block of an arm at a load, by both names
	known  map[string]*service         // what simulated arms go by, by their workers
	since  time.Time                   // when this run began
	before time.Duration               // how long the one that is kept has taken
}

// arrange lays out the blocks: in each round each load, and at each load the arms in an
// order that is drawn anew. So the blocks of a pair run close together.
func (t *trial) arrange() (cells []cell) {
	s := t.Scenario
	plans := make([][]stats.Round, len(s.Loads))
	arms := make([][]int, len(s.Loads))
	there := make([]int, len(s.Loads))
	rounds := 0
	for i := range s.Loads {
		l := &s.Loads[i]
		arms[i] = t.allowed(l)
		last, whole := t.there(l, arms[i])
		end := min(last+max(s.RoundsAt(l)-whole, 0), result.MostRounds)
		there[i], plans[i] = last, stats.Plan(s.Seed+uint64(i)<<32, end, len(arms[i]))[last:]
		rounds = max(rounds, len(plans[i]))
	}
	for round := range rounds {
		for i := range s.Loads {
			if round >= len(plans[i]) {
				continue
			}
			for place, which := range plans[i][round].Order {
				cells = append(cells, cell{
					arm: &s.Arms[arms[i][which]], load: &s.Loads[i], round: there[i] + round + 1, order: place + 1, seed: plans[i][round].Seed,
				})
			}
		}
	}
	return cells
}

// allowed are the arms that the machine can measure at a load.
func (t *trial) allowed(l *scenario.Load) (arms []int) {
	for _, i := range t.Scenario.ArmsAt(l) {
		a := &t.Scenario.Arms[i]
		if why := t.Limits.Refuse(demand(a, l, t.generators(a, l))); why != "" {
			t.leaveOut(fmt.Sprintf("%s at %s: %s.", a.Name, l.Name, why))
			continue
		}
		arms = append(arms, i)
	}
	return arms
}

// errEnded says that ctx has ended, and that the run is cut short.
var errEnded = errors.New("the run was ended")

func (t *trial) blocks(ctx context.Context) error {
	for i, c := range t.cells {
		if t.out[c.arm.Name] != "" {
			continue
		}
		began := time.Now()
		err := errEnded
		if ctx.Err() == nil {
			err = t.settle(ctx, &c, t.block(ctx, i))
		}
		if errors.Is(err, errEnded) {
			t.run.Cut = true
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s at %s: %w", c.arm.Name, c.load.Name, err)
		}
		t.took[[2]string{c.arm.Name, c.load.Name}] = time.Since(began)
		_ = testbed.Wait(ctx, t.Scenario.Pause)
	}
	t.cells = slices.DeleteFunc(t.cells, func(c cell) bool { return t.out[c.arm.Name] != "" })
	return nil
}

// settle says what the error of a block means for the run: an arm that may be missing is
// left out, and what could not be begun when ctx had ended is no failure.
func (t *trial) settle(ctx context.Context, c *cell, err error) error {
	var missing *startError
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return errEnded
	case errors.As(err, &missing) && c.arm.Optional && !t.measured(c.arm.Name):
		t.out[c.arm.Name] = missing.Error()
		t.leaveOut(fmt.Sprintf("%s: %v.", c.arm.Name, missing))
		return nil
	default:
		return err
	}
}

func (t *trial) measured(arm string) bool {
	return slices.ContainsFunc(t.run.Blocks, func(b result.Block) bool { return b.Arm == arm })
}

// left is about how long the blocks from one on take.
func (t *trial) left(from int) (sum time.Duration) {
	for i := from; i < len(t.cells); i++ {
		c := &t.cells[i]
		switch took, known := t.took[[2]string{c.arm.Name, c.load.Name}]; {
		case t.out[c.arm.Name] != "":
		case known:
			sum += took
		default:
			sum += c.load.Expected() + t.Scenario.Pause + time.Second/2
		}
	}
	return sum
}

func (t *trial) note(text string) {
	if !slices.Contains(t.run.Notes, text) {
		t.run.Notes = append(t.run.Notes, text)
	}
}

// goOn goes on with the run that is kept. What is in it stays, the marked blocks included:
// whether there are more rounds depends on marks and never on figures, so that no verdict
// comes of looking twice.
//
// Errors: one line for a run of something else.
func (t *trial) goOn() error {
	k, n := t.Kept, t.run
	switch {
	case k.Scenario != n.Scenario || k.Text != n.Text || !slices.Equal(k.Arms, n.Arms) || !slices.Equal(k.Loads, n.Loads) || !slices.Equal(k.Claims, n.Claims):
		return errors.New("the run that is there is of another scenario: give the same file and flags as then")
	case k.Seed != n.Seed || k.Rounds != n.Rounds || k.Quick != n.Quick:
		return errors.New("the run that is there has another seed or number of rounds: give the same as then")
	case k.Version != n.Version || !slices.Equal(k.Machine, n.Machine):
		return errors.New("the run that is there was measured with another cabrank, or on another machine")
	}
	whole := *k
	whole.Cut = false
	t.run, t.before = &whole, k.Took
	for i := range t.Scenario.Arms {
		name := t.Scenario.Arms[i].Name
		for _, why := range k.LeftOut {
			if text, is := strings.CutPrefix(why, name+": "); is {
				t.out[name] = text // it stays left out
			}
		}
	}
	return nil
}

// there tells how many rounds there are at a load, and how many of them are not marked.
func (t *trial) there(l *scenario.Load, arms []int) (last, whole int) {
	wanted := 0
	for _, i := range arms {
		if t.out[t.Scenario.Arms[i].Name] == "" {
			wanted++
		}
	}
	judged := map[int]int{}
	for i := range t.run.Blocks {
		b := &t.run.Blocks[i]
		if b.Load != l.Name {
			continue
		}
		last = max(last, b.Round)
		if b.Judged() {
			judged[b.Round]++
		}
	}
	for _, n := range judged {
		if n >= wanted {
			whole++
		}
	}
	return last, whole
}

// more says what is added to a run that is kept, or that nothing is.
func (t *trial) more() error {
	if t.Kept == nil {
		return nil
	}
	if !slices.ContainsFunc(t.cells, func(c cell) bool { return t.out[c.arm.Name] == "" }) {
		return errors.New("no round of the run that is there is marked or missing")
	}
	t.note(fmt.Sprintf("%s: %d blocks in place of rounds that were marked or missing, from block %d on.",
		time.Now().Format(time.DateOnly), len(t.cells), len(t.run.Blocks)+1))
	return nil
}

// measuredMore is how many blocks were added to those of the run that is kept.
func (t *trial) measuredMore() int {
	if t.Kept == nil {
		return len(t.run.Blocks)
	}
	return len(t.run.Blocks) - len(t.Kept.Blocks)
}

// elapsed is how long the run has taken, pauses of its reader left out.
func (t *trial) elapsed() time.Duration { return t.before + time.Since(t.since) }

func (t *trial) leaveOut(why string) {
	if !slices.Contains(t.run.LeftOut, why) {
		t.run.LeftOut = append(t.run.LeftOut, why)
	}
}

// together writes lines of the form "name: why" with each reason once, behind the names
// of all that it is for.
func together(lines []string) (reasons []string) {
	names := map[string][]string{}
	for _, line := range lines {
		name, why, _ := strings.Cut(line, ": ")
		if !slices.Contains(reasons, why) {
			reasons = append(reasons, why)
		}
		names[why] = append(names[why], name)
	}
	for i, why := range reasons {
		reasons[i] = strings.Join(names[why], ", ") + ": " + why
	}
	return reasons
}
