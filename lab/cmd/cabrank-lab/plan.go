package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cabrank/cabrank/internal/cli"
	"github.com/cabrank/cabrank/lab/internal/goal"
	"github.com/cabrank/cabrank/lab/internal/lab"
	"github.com/cabrank/cabrank/lab/internal/report"
	"github.com/cabrank/cabrank/lab/internal/result"
	"github.com/cabrank/cabrank/lab/internal/traffic"
)

// loadPlan is what all loads have in common: when calls are made, and what is done with
// what came of it.
type loadPlan struct {
	traffic.Options

	out  string
	fail []string
	find bool
	json bool

	thresholds goal.Thresholds // read from fail
	first      float64         // of a search
}

type prepared interface {
	fmt.Stringer
	// Run makes the calls of a plan; watch is called about once a second.
	Run(ctx context.Context, plan traffic.Plan, watch func(traffic.Live)) (report.Load, error)
	// Find looks for the highest rate at which thresholds hold.
	Find(ctx context.Context, o traffic.Options, first float64, thresholds goal.Thresholds, told func(goal.Step)) (goal.Result, error)
}

func (f *loadPlan) addPlanTo(flags *pflag.FlagSet) {
	flags.StringVar(&f.Rate, "rate", "", "open loop: calls per second, such as 500, 100..500 or 10s:100,1s:2000,10s:100")
	flags.StringVar(&f.Arrivals, "arrivals", "", "constant (default) or poisson")
	flags.IntVar(&f.Callers, "callers", 0, "closed loop: callers who each wait for the answer")
	flags.StringVar(&f.Stages, "stages", "", "closed loop: callers over time, such as 30s:30,1m:60,20s:0")
	flags.DurationVar(&f.Think, "think", 0, "closed loop: pause of a caller between calls")
	flags.DurationVar(&f.Duration, "duration", 0, "how long, if --rate and --stages do not say")
	flags.IntVarP(&f.Calls, "calls", "n", 0, "how many calls, with --rate or --callers; --duration is then the most that these callers take, or 10m")
	flags.DurationVar(&f.Warmup, "warmup", 0, "what comes before and is not counted")
	flags.DurationVar(&f.Timeout, "timeout", f.Timeout, "deadline of each call, from the moment it was due; 0: none")
	flags.IntVar(&f.Most, "max-in-flight", 0, "most calls under way in an open loop; 0: 10,000, or what descriptors allow")
	flags.Uint64Var(&f.Seed, "seed", 1, "draws arrivals and placeholders; the same seed, the same calls")
}

func (f *loadPlan) addOutcomeTo(flags *pflag.FlagSet) {
	flags.StringArrayVar(&f.fail, "fail", nil, "`threshold` that has to hold, such as 'p99<100ms'; several are possible")
	flags.BoolVar(&f.find, "find", false, "look for the highest rate at which all thresholds hold, from --rate on")
	flags.BoolVar(&f.json, "json", false, "print load.json, or find.json, in place of words")
	flags.Var((*cli.Folder)(&f.out), "out", "`folder` for report.html and load.json; find.json of --find")
}

func (f *loadPlan) readGoal(p traffic.Plan) (err error) {
	if len(f.fail) > 0 {
		if f.thresholds, err = goal.Parse(f.fail); err != nil {
			return err
		}
	}
	switch {
	case !f.find:
		return nil
	case f.Calls > 0:
		return errors.New("--find has runs of one length: give --duration in place of --calls")
	case len(f.thresholds) == 0:
		return errors.New("--find: at which thresholds? give --fail, such as --fail 'p99<100ms'")
	case len(p.Rate) != 1 || p.Rate[0].From != p.Rate[0].To:
		return errors.New("--find begins at one rate: give --rate with a number, such as --rate 100")
	}
	f.first = p.Rate[0].From
	return nil
}

// prepared makes the load, which ends with the first signal.
func (f *loadPlan) prepared(cmd *cobra.Command, plan traffic.Plan, prepare func(context.Context) (*lab.Prepared, error)) error {
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	p, err := prepare(ctx)
	if err != nil {
		return cli.UsageError(err)
	}
	defer p.Close()
	return f.make(ctx, p, plan, cmd.OutOrStdout(), cmd.ErrOrStderr())
}

func (f *loadPlan) make(ctx context.Context, p prepared, plan traffic.Plan, stdout, stderr io.Writer) error {
	if f.out != "" {
		if _, err := result.MakeFolder(f.out); err != nil {
			return cli.UsageError(fmt.Errorf("--out: %w", err))
		}
	}
	if f.find {
		return f.search(ctx, p, stdout, stderr)
	}
	return f.run(ctx, p, plan, stdout, stderr)
}

// The ends of a load that its report has told.
var (
	errUnanswered = cli.Told(cli.Failed, errors.New("nothing was answered"))
	errMissed     = cli.Told(cli.Failed, errors.New("thresholds did not hold"))
)

func (f *loadPlan) run(ctx context.Context, p prepared, plan traffic.Plan, stdout, stderr io.Writer) error {
	length := plan.Length().String()
	if plan.Calls > 0 {
		length = fmt.Sprintf("%d calls", plan.Calls)
	}
	fmt.Fprintf(stderr, "%s for %s; Ctrl-C ends it and keeps what was measured\n", p, length)
	progress := newLoadProgress(stderr)
	done, err := p.Run(ctx, plan, progress.show)
	progress.clear()
	if err != nil {
		return err
	}
	if len(f.thresholds) > 0 {
		judgement := f.thresholds.Judge(done.Record, done.Busy)
		done.Judgement = &judgement
	}
	kept, words := lab.OfLoad(done), stdout
	if f.json {
		words = stderr
	}
	if err := show(kept, f.json, stdout); err != nil {
		return err
	}
	if f.out != "" {
		if err := kept.Save(f.out); err != nil {
			return err
		}
		fmt.Fprintf(words, "\nThe report is %s.\n", filepath.Join(f.out, lab.ReportFile))
	}
	switch {
	case done.Judgement != nil && done.Judgement.Verdict != goal.Held:
		return errMissed
	case done.Record.Due > 0 && done.Record.Calls.Answered.Count() == 0:
		return errUnanswered
	}
	return nil
}

// show prints what was found, in words or as JSON.
func show(k lab.Kept, asJSON bool, stdout io.Writer) error {
	if !asJSON {
		return k.Document.Print(stdout)
	}
	text, err := k.JSON()
	if err == nil {
		_, err = stdout.Write(text)
	}
	return err
}

func (f *loadPlan) search(ctx context.Context, p prepared, stdout, stderr io.Writer) error {
	words := stdout
	if f.json {
		words = stderr
	}
	found, err := p.Find(ctx, f.Options, f.first, f.thresholds, func(s goal.Step) { fmt.Fprintln(words, s) })
	kept := lab.OfSearch(found)
	if err == nil && f.json {
		err = show(kept, true, stdout)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(words, "\n%s\n", found)
	for _, note := range found.Notes {
		fmt.Fprintln(words, note)
	}
	if f.out != "" {
		if err := kept.Save(f.out); err != nil {
			return err
		}
	}
	if found.Holds == 0 {
		return errMissed
	}
	return nil
}
