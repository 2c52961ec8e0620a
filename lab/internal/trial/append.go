package trial

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cabrank/cabrank/lab/internal/scenario"
)

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

// leaveOut notes a sentence on what is not measured, once.
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
