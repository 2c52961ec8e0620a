package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/cabrank/cabrank/internal/cli"
	"github.com/cabrank/cabrank/lab/internal/lab"
	"github.com/cabrank/cabrank/lab/internal/result"
	"github.com/cabrank/cabrank/lab/internal/scenario"
	"github.com/cabrank/cabrank/lab/internal/testbed"
	"github.com/cabrank/cabrank/lab/internal/traffic"
	"github.com/cabrank/cabrank/lab/internal/trial"
)

const labRunHelp = `Run a scenario: ways to do something, compared on this machine. It is one that
'cabrank lab list' lists, or a file; docs/lab-run.md explains its keys.

For each block the processes of one arm are started, called by a plan, and stopped. Blocks
of a round have the same arrivals and the same work, and arms take turns in an order that
is drawn. What it takes is printed first.

--quick is a short form, to see that it works and about what comes out: it has no verdict
on slow calls. Without it a scenario takes from minutes to hours.

Ctrl-C ends the run and keeps what was measured; a second one ends it at once.

Exit status: 0 if it ran, also if Ctrl-C ended it; 1 if something failed on the way, with
what was measured until then kept, or if a bar of the scenario is missed without
--quick; 2 if the command line, the file or the machine does not
allow it, in which case nothing is left.`

const labRunExamples = `  # in a minute
  cabrank lab run connections --quick

  # the whole, with the report in a folder
  cabrank lab run connections --out connections

  # again what was marked, or is missing after Ctrl-C
  cabrank lab run connections --out connections --append

  # another one like it
  cabrank lab show connections > mine.yml
  cabrank lab run mine.yml --rounds 20`

type runFlags struct {
	quick  bool
	out    string
	seed   uint64
	rounds int
	more   bool
	json   bool
	kept   *result.Run // to go on with
	set    []string
	arms   []string
}

func newLabRunCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:        "run NAME|FILE.yml",
		SuggestFor: []string{"what-if"}, // it was a command: now an arm with the front "simulated"
		Short:      "Run a scenario: compare ways to do something, with a report",
		Long:       labRunHelp,
		Example:    labRunExamples,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return fmt.Errorf("which scenario? there are: %s; or a file that ends in .yml", strings.Join(scenario.Names(), ", "))
			case len(args) > 1:
				return fmt.Errorf("unexpected argument %q; one scenario is run at a time", args[1])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := f.scenario(cmd, args[0])
			if err != nil {
				return cli.UsageError(err)
			}
			return f.run(cmd.Context(), s, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.BoolVar(&f.quick, "quick", false, "the short form of the scenario")
	flags.Var((*cli.Folder)(&f.out), "out", "`folder` for report.html, run.json and raw records; NAME-DATE-TIME if not given")
	flags.Uint64Var(&f.seed, "seed", 0, "draws arrivals, work and the order of the arms; that of the scenario if not given")
	flags.StringArrayVar(&f.set, "set", nil, "`NAME=NUMBER` for one of the scenario's values; may be given several times")
	flags.StringArrayVar(&f.arms, "arm", nil, "`NAME` of an arm, to run it alone; may be given several times")
	flags.IntVar(&f.rounds, "rounds", 0, "blocks of each arm at each load; those of the scenario if not given")
	flags.BoolVar(&f.json, "json", false, "print run.json in place of words")
	flags.BoolVar(&f.more, "append", false, "go on with the run in --out: rounds that are marked or missing are run again")
	return cmd
}

// mostScenario bounds a file, in bytes.
const mostScenario = 1 << 20

func (f *runFlags) scenario(cmd *cobra.Command, name string) (s *scenario.Scenario, err error) {
	set, err := f.values()
	switch {
	case err != nil:
	case strings.ContainsRune(name, filepath.Separator), strings.HasSuffix(name, ".yml"), strings.HasSuffix(name, ".yaml"):
		var text []byte
		if text, err = result.ReadFile(name, mostScenario); err == nil {
			s, err = scenario.Parse(name, text, set)
		}
	default:
		s, err = scenario.Builtin(name, set)
	}
	if err != nil {
		return nil, err
	}
	if f.quick {
		s = s.Quick()
	}
	if len(f.arms) > 0 {
		if s, err = s.Only(f.arms); err != nil {
			return nil, fmt.Errorf("--arm: %w", err)
		}
	}
	if cmd.Flags().Changed("seed") {
		s.Seed = f.seed
	}
	if cmd.Flags().Changed("rounds") {
		if f.rounds < 1 || f.rounds > 1000 {
			return nil, fmt.Errorf("--rounds %d: want 1 to 1000", f.rounds)
		}
		s.SetRounds(f.rounds)
	}
	if f.out == "" && f.more {
		return nil, errors.New("--append: with which run? give its folder as --out")
	}
	if f.out == "" {
		f.out = s.Name + time.Now().Format("-2006-01-02-150405")
	}
	if f.more {
		f.kept, err = result.Read(f.out)
		return s, err
	}
	for _, name := range []string{result.RunFile, lab.ReportFile} {
		if _, err := os.Stat(filepath.Join(f.out, name)); err == nil {
			return nil, fmt.Errorf("--out: %s has the results of another run, %s: name another folder", f.out, name)
		}
	}
	return s, nil
}

func (f *runFlags) values() (map[string]string, error) {
	set := map[string]string{}
	for _, given := range f.set {
		name, number, found := strings.Cut(given, "=")
		if !found || name == "" {
			return nil, fmt.Errorf("--set %.60q: want NAME=NUMBER, such as iterations=10000", given)
		}
		set[name] = number
	}
	return set, nil
}

// labGCPercent keeps this process small beside those that it measures. It has little to
// do while they work.
const labGCPercent = 20

func (f *runFlags) run(ctx context.Context, s *scenario.Scenario, stdout, stderr io.Writer) error {
	programs, err := findPrograms()
	if err != nil {
		return err
	}
	placed, forget, err := place(s, programs.Cabrank)
	if err != nil {
		return err
	}
	defer forget()
	if err := trial.CheckSimulated(placed); err != nil {
		return cli.UsageError(fmt.Errorf("%s: %w", s.Name, err))
	}
	debug.SetGCPercent(labGCPercent)
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)     // a second signal ends it at once
	files, _ := testbed.RaiseFiles() // what it is not allowed is found by the limits
	how := fmt.Sprintf("%d blocks, about %s", s.Blocks(), about(s.Estimate()))
	if f.more {
		how = "going on with " + f.out
	}
	fmt.Fprintf(stderr, "%s: %s; Ctrl-C ends it and keeps what was measured\n", s.Name, how)
	progress := &runProgress{loadProgress: newLoadProgress(stderr)}
	generator := []string{programs.Lab, "agent"}
	if programs.Logs, err = filepath.Abs(filepath.Join(f.out, "logs")); err != nil {
		return err
	}
	_, err = os.Stat(f.out)
	isNew := err != nil
	if err := os.MkdirAll(programs.Logs, 0o755); err != nil {
		return cli.UsageError(fmt.Errorf("--out: %w", err))
	}
	done, err := trial.Run(ctx, trial.Options{
		Scenario: placed, Folder: f.out, Kept: f.kept, Version: versionOf(ctx, programs.Cabrank), Command: typed(os.Args), Machine: []string{lab.Machine()}, Agent: generator, Hire: trial.Hire,
		Start: trial.Rigs(programs, placed), Limits: testbed.ReadLimits(files), Noise: testbed.StartNoise, Tell: progress.tell,
	})
	progress.clear()
	if done == nil {
		if isNew { // with nothing measured nothing is left
			_ = os.RemoveAll(programs.Logs)
			_ = os.Remove(f.out)
		}
		if ctx.Err() != nil {
			return err
		}
		return cli.UsageError(err)
	}
	if f.json {
		text, unread := os.ReadFile(result.File(f.out))
		_, unsaid := stdout.Write(text)
		return errors.Join(err, result.Replace(filepath.Join(f.out, lab.ReportFile), lab.RunReport(f.out, done).HTML()), unread, unsaid)
	}
	return errors.Join(err, f.tell(done, stdout))
}

// place fills in what the file cannot know. forget removes what was unpacked for it.
func place(s *scenario.Scenario, cabrank string) (placed *scenario.Scenario, forget func(), err error) {
	at := scenario.Places{Cabrank: cabrank}
	if !s.NeedsExamples() {
		return s.Placed(at), func() {}, nil
	}
	if at.Examples, err = testbed.TempFolder(); err != nil {
		return nil, nil, err
	}
	forget = func() { _ = os.RemoveAll(at.Examples) } // it is ours
	if err := unpack(at.Examples); err != nil {
		forget()
		return nil, nil, err
	}
	return s.Placed(at), forget, nil
}

// typed is a command line, with quotes where a shell needs them.
func typed(words []string) string {
	words = append([]string{filepath.Base(words[0])}, words[1:]...)
	for i, word := range words {
		if strings.ContainsAny(word, " '\"$;&|<>()*?") {
			words[i] = strconv.Quote(word)
		}
	}
	return strings.Join(words, " ")
}

// tell writes the report of a run and prints what came of it, in this order: a reader of
// stdout that has gone ends the process.
func (f *runFlags) tell(done *result.Run, stdout io.Writer) error {
	d, file := lab.RunReport(f.out, done), filepath.Join(f.out, lab.ReportFile)
	saved := result.Replace(file, d.HTML())
	if err := errors.Join(d.Print(stdout), saved); err != nil {
		return err
	}
	missed := tellBars(done, stdout)
	fmt.Fprintf(stdout, "\nThe report is %s.\n", file)
	if done.Cut || slices.ContainsFunc(done.Blocks, func(b result.Block) bool { return !b.Judged() }) {
		fmt.Fprintf(stdout, "The same with --out %s --append runs rounds again that are marked or missing.\n", f.out)
	}
	if missed > 0 && !done.Quick {
		return fmt.Errorf("%s: %d of %d bars missed or not valid", done.Scenario, missed, len(done.Bars))
	}
	return nil
}

func tellBars(done *result.Run, stdout io.Writer) (missed int) {
	for i, j := range done.JudgeBars() {
		if i == 0 {
			fmt.Fprintln(stdout, "\nBars, by the median over the rounds:")
		}
		fmt.Fprintln(stdout, "  "+j.String())
		if j.Verdict == result.BarMissed || j.Verdict == result.BarNotValid {
			missed++
		}
	}
	return missed
}

// runProgress shows how a run goes: a line for each block that has ended, and one in
// place for that under way.
type runProgress struct{ *loadProgress }

func (p *runProgress) tell(g trial.Progress) {
	if g.Done != nil {
		p.clear()
		fmt.Fprintln(p.out, blockLine(g))
		return
	}
	p.replace(fmt.Sprintf("%d/%d %s left, %s at %s", g.Block, g.Blocks, about(g.Left), g.Arm, g.Load))
}

// blockLine is what a block has come to, in about 80 columns.
func blockLine(g trial.Progress) string {
	b := g.Done
	parts := []string{"nothing was answered"}
	if !b.Silent {
		parts = []string{fmt.Sprintf("%.0f/s", b.Figures["rate"])}
		for _, name := range []string{"p50", "p99"} {
			if v, known := b.Figures[name]; known {
				parts = append(parts, fmt.Sprintf("%s %v", name, short(time.Duration(v*float64(time.Second)))))
			}
		}
		parts = append(parts, fmt.Sprintf("errors %.3g %%", 100*b.Figures["errors"]))
	}
	line := fmt.Sprintf("%d/%d %s at %s: %s", g.Block, g.Blocks, g.Arm, g.Load, strings.Join(parts, ", "))
	if !b.Judged() {
		line += "; not judged: " + strings.Join(b.Marks, "; ")
	}
	return line
}

// quietProgress is how often a load tells how it goes where lines cannot be replaced.
const quietProgress = 10 * time.Second

// loadProgress shows how a load goes: in place on a terminal, else in a line now and then.
type loadProgress struct {
	out    io.Writer
	screen cli.Screen
	last   time.Duration // when a line was written that stays
	shown  bool          // there is a line to replace
}

func newLoadProgress(out io.Writer) *loadProgress {
	return &loadProgress{out: out, screen: cli.ScreenOf(out)}
}

func (p *loadProgress) show(l traffic.Live) {
	line := progressLine(l)
	if p.replace(line) {
		return
	}
	if l.Elapsed-p.last >= quietProgress-time.Second/2 {
		p.last = l.Elapsed
		fmt.Fprintln(p.out, line)
	}
}

// replace shows a line in the place of the last one, where that is possible.
func (p *loadProgress) replace(line string) bool {
	if p.screen.InPlace {
		fmt.Fprintf(p.out, "\r\x1b[K%s", p.screen.Fit(line))
		p.shown = true
	}
	return p.screen.InPlace
}

func (p *loadProgress) clear() {
	if p.shown {
		fmt.Fprint(p.out, "\r\x1b[K")
		p.shown = false
	}
}

// progressLine is how a load goes, in about 80 columns.
func progressLine(l traffic.Live) string {
	left := max(l.Length-l.Elapsed, 0).Round(time.Second)
	line := fmt.Sprintf("%v left", left)
	if left == 0 {
		line = "waiting for answers"
	}
	if l.Warmup {
		line += ", warming up"
	}
	if l.PerSecond > 0 {
		line += fmt.Sprintf(", %.0f/s, p50 %v, p99 %v", l.PerSecond, short(l.P50), short(l.P99))
	}
	line += fmt.Sprintf(", %d answered", l.Answered)
	for _, more := range []struct {
		n    int64
		what string
	}{{l.Failed, "failed"}, {l.Unsent, "unsent"}, {l.UnderWay, "under way"}} {
		if more.n > 0 {
			line += fmt.Sprintf(", %d %s", more.n, more.what)
		}
	}
	return line
}

// short is a duration with about two digits.
func short(d time.Duration) time.Duration {
	for unit := time.Second; unit > time.Microsecond; unit /= 10 {
		if d >= 10*unit {
			return d.Round(unit)
		}
	}
	return d.Round(time.Microsecond)
}
