package trial

import (
	"cmp"
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/cabrank/cabrank/lab/internal/caller"
	"github.com/cabrank/cabrank/lab/internal/rig"
	"github.com/cabrank/cabrank/lab/internal/scenario"
	"github.com/cabrank/cabrank/lab/internal/testbed"
)

// Rigs starts the arms of a scenario as package rig does. All quotas are scaled alike.
func Rigs(programs rig.Programs, s *scenario.Scenario) Starter {
	most := 0.0
	for i := range s.Loads {
		for _, which := range s.ArmsAt(&s.Loads[i]) {
			most = max(most, spec(programs, &s.Arms[which], &s.Loads[i]).Cores())
		}
	}
	scale := rig.Scale(most)
	can := map[string]bool{} // what was tried, and can run
	return func(ctx context.Context, arm *scenario.Arm, load *scenario.Load) (Stand, error) {
		key := fmt.Sprintf("%q in %q", arm.Workers.Try, arm.Workers.Dir)
		if !can[key] {
			if err := try(ctx, &arm.Workers); err != nil {
				return nil, err
			}
			can[key] = true
		}
		what := spec(programs, arm, load)
		what.Scale = scale
		r, err := rig.Start(ctx, what)
		if err != nil {
			return nil, err
		}
		return r, nil
	}
}

// tryLimit is how long it may take to find out whether a command can run.
const tryLimit = 30 * time.Second

func try(ctx context.Context, w *scenario.Workers) error {
	if len(w.Try) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, tryLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, w.Try[0], w.Try[1:]...)
	cmd.Dir = w.Dir
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s cannot run (%v): %s", strings.Join(w.Try, " "), err, w.Install) //nolint:errorlint // for people
	}
	return nil
}

// spec says what an arm consists of at a load: the workers that events add are there,
// and come later.
func spec(programs rig.Programs, arm *scenario.Arm, load *scenario.Load) rig.Spec {
	w := arm.Workers
	w.Count = cmp.Or(load.Workers, w.Count)
	all := workersAt(arm, load)
	s := rig.Spec{
		Programs: programs, Name: arm.Name,
		Front: arm.Front, Gateway: arm.Gateway,
	}
	for i := range all {
		port := 0
		if w.Port > 0 {
			port = w.Port + i
		}
		s.Workers = append(s.Workers, rig.Worker{
			Port: port, Command: command(programs.Lab, w, load, i+1), Env: w.Env, Dir: w.Dir, Slots: w.Slots, CPU: w.CPU, Cores: w.Cores,
			Later: i >= w.Count, Within: i > 0 && w.Program == scenario.ProgramEcho,
		})
	}
	return s
}

func command(lab string, w scenario.Workers, load *scenario.Load, number int) []string {
	if w.Program == scenario.ProgramNone {
		return slices.Clone(w.Command)
	}
	if w.Program == scenario.ProgramEcho {
		return []string{lab, "worker", "--listen", "{addr}", "--echo", fmt.Sprint(w.Count)}
	}
	c := []string{
		lab, "worker", "--listen", "{addr}", "--name", "{worker}",
		"--slots", fmt.Sprint(w.Slots), "--full", string(w.Full),
	}
	if w.MaxAge > 0 {
		c = append(c, "--max-age", w.MaxAge.String())
	}
	for _, e := range load.Events {
		if e.Do == scenario.DoSlow && (e.Worker == 0 || e.Worker == number) {
			return append(c, "--slow-by", e.By.String(), "--slow-times", fmt.Sprint(e.Times))
		}
	}
	return c
}

// otherFiles are descriptors of a generator that are no connection of a call, amply.
const otherFiles = 1000

// generators is how many there are for an arm at a load: as many as are asked for, and as the
// descriptors of a process ask for.
func (t *trial) generators(a *scenario.Arm, l *scenario.Load) int {
	n := max(a.Client.Processes, l.Processes, 1)
	if each := int(t.Limits.Files) - otherFiles; each > 0 {
		n = max(n, (demand(a, l, 1).Connections+each-1)/each)
	}
	return n
}

func demand(a *scenario.Arm, l *scenario.Load, generators int) testbed.Demand {
	d := testbed.Demand{Generators: generators, Listeners: 1}
	switch a.Front.Kind {
	case scenario.FrontDNS:
		d.Listeners = cmp.Or(l.Workers, a.Workers.Count)
	case scenario.FrontDNAT, scenario.FrontHAProxyTCP:
		d.Through = true
	default:
	}
	if a.Client.Connections != caller.PerCall {
		return d // few
	}
	d.Connections = underWay(l)
	d.AtOnce = l.AtOnce
	return d
}

// underWay is how many calls are under way at a time, at most: all that are due within
// the time that one may take.
func underWay(l *scenario.Load) int {
	if l.AtOnce > 0 {
		if l.Options.Timeout > l.Every {
			return 2 * l.AtOnce
		}
		return l.AtOnce
	}
	p, err := l.Plan(0)
	switch {
	case err != nil:
		return 0
	case !p.Open():
		return int(p.Callers.Most())
	case p.Timeout > 0:
		return min(int(p.Rate.Most()*p.Timeout.Seconds()), p.Most)
	default:
		return 0 // it depends on the service; Most keeps it within bounds
	}
}
