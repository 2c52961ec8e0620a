package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/cabrank/cabrank/internal/cli"
	"github.com/cabrank/cabrank/lab/internal/caller"
	"github.com/cabrank/cabrank/lab/internal/goal"
	"github.com/cabrank/cabrank/lab/internal/lab"
	"github.com/cabrank/cabrank/lab/internal/method"
	"github.com/cabrank/cabrank/lab/internal/report"
	"github.com/cabrank/cabrank/lab/internal/traffic"
	"github.com/cabrank/cabrank/lab/internal/whatif"
)

const whatIfHelp = `Say how many workers a load needs before there is the load: what each number of
workers and slots would give to a forecast rate, behind Cabrank and behind balancers that
choose a worker when a call comes.

First the service at ADDRESS, one worker, is measured: for each number of slots by as many
callers, each of whom waits for its answer, so that nobody waits for a slot. It gets real
calls. What an echo costs is taken off. Then the code of Cabrank's queue is simulated with
these times; that takes some seconds. docs/lab-what-if.md tells what is left out.

--service-times FILE takes the place of ADDRESS: a time in each line, what-if.json, or
load.json of a closed loop.

Exit status: 0 if it ran, and with --fail if a number of workers behind Cabrank holds all
thresholds; 1 if none does, or if the service does not answer well; 2 if the command line is
wrong or there is no such method.`

const whatIfExamples = `  # how many workers of five threads for 300 calls a second, each with a deadline
  cabrank lab what-if localhost:50051 demo.Jobs/GetJob --data '{"id": 1}' --slots 5 \
      --rate 300 --timeout 500ms --fail 'p99<200ms'

  # one thread or five for each worker? as a page with plots
  cabrank lab what-if localhost:50051 demo.Jobs/GetJob --data @jobs.json --slots 1,5 \
      --workers 1..16 --rate 300 --out results

  # another rate, from what was measured then
  cabrank lab what-if --service-times results/what-if.json --slots 5 --rate 500

  # from times in a log, one in each line: no service is needed
  cabrank lab what-if --service-times times.txt --rate 300 --fail 'p99<200ms'`

// whatIfFlags are the flags of cabrank lab what-if.
type whatIfFlags struct {
	whatif.Question

	data, out            string
	proto                method.Files
	metadata, fail       []string
	rate, workers, slots string
	times                string
	echo                 time.Duration
	tls                  cli.TLS
	calibration          lab.Calibration
	service              string
	machine              []string
	pids                 []int
}

func newLabWhatIfCommand() *cobra.Command {
	var f whatIfFlags
	cmd := &cobra.Command{
		Use:     "what-if [ADDRESS PACKAGE.SERVICE/METHOD]",
		Short:   "Say how many workers and slots a forecast load needs",
		Long:    whatIfHelp,
		Example: whatIfExamples,
		Args:    f.arguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.read(); err != nil {
				return cli.UsageError(err)
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			began := time.Now()
			err := f.learn(ctx, args, cmd.InOrStdin(), cmd.ErrOrStderr())
			var answer *whatif.Answer
			if err == nil {
				answer, err = f.ask(ctx, cmd.ErrOrStderr())
			}
			if err != nil && ctx.Err() != nil {
				return errors.New("ended before there was an answer")
			}
			if err != nil {
				return err
			}
			answer.Service, answer.Began, answer.Machine = f.service, began, f.machine
			return f.tell(report.WhatIf{Answer: answer}, cmd.OutOrStdout())
		},
	}
	f.addTo(cmd)
	return cmd
}

func (f *whatIfFlags) arguments(_ *cobra.Command, args []string) error {
	switch {
	case f.times != "" && len(args) > 0:
		return fmt.Errorf("unexpected argument %q: with --service-times nobody is called", args[0])
	case f.times == "" && len(args) < 2:
		return errors.New("which service? give the address of one worker and a method, such as localhost:50051 demo.Jobs/GetJob, or --service-times FILE")
	case len(args) > 2:
		return fmt.Errorf("unexpected argument %q; requests go into --data", args[2])
	}
	return nil
}

func (f *whatIfFlags) addTo(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.rate, "rate", "", "the forecast: calls per second, such as 300 or 18000/m")
	flags.DurationVar(&f.Timeout, "timeout", 0, "deadline of each call; 0: none")
	flags.StringVar(&f.workers, "workers", "", "numbers of workers, such as 1..16 or 2,4,8; as many as may be of use if left out")
	flags.StringVar(&f.slots, "slots", "", "numbers of slots of each worker, such as 1,5; 1, or those of what-if.json, if left out")
	flags.StringArrayVar(&f.fail, "fail", nil, "`threshold` that has to hold, such as 'p99<200ms'; several are possible")
	flags.StringVar(&f.data, "data", "", "requests as JSON, @`FILE`, or @- for standard input")
	flags.StringArrayVar(&f.proto.Names, "proto", nil, "`.proto` file that describes the method, in place of reflection; several are possible")
	flags.StringArrayVar(&f.proto.Imports, "import-path", nil, "`folder` in which --proto and its imports are looked up")
	flags.StringArrayVar(&f.metadata, "metadata", nil, "`NAME:VALUE` to send with each call; several are possible")
	f.tls.AddTo(flags)
	flags.DurationVar(&f.calibration.Duration, "calibrate", 10*time.Second, "how long the service is measured with each number of slots")
	flags.DurationVar(&f.calibration.Warmup, "warmup", 2*time.Second, "what comes before and is not counted")
	flags.IntVar(&f.calibration.Workers, "behind", 1, "workers behind ADDRESS; with more all are kept busy, and what they cost each other is in the times")
	flags.IntSliceVar(&f.pids, "pid", nil, "`process` of this machine that answers at ADDRESS: how much of its time it computes; several are possible")
	flags.StringVar(&f.calibration.TimeKey, "time-key", "", "header or trailer in which a worker tells how long it took, such as 12.5ms or 12.5")
	flags.StringVar(&f.times, "service-times", "", "`FILE` of times that were measured before, in place of ADDRESS")
	flags.DurationVar(&f.echo, "echo", 0, "what the times of that file have in them that is not the service")
	flags.IntVar(&f.Queue.Length, "queue", 1000, "calls that may wait in Cabrank")
	flags.DurationVar(&f.Queue.Timeout, "queue-timeout", 30*time.Second, "for how long a call may wait there")
	flags.IntVar(&f.Calls, "calls", whatif.DefaultCalls, "calls to simulate for each number of workers and each policy")
	flags.Uint64Var(&f.Seed, "seed", 1, "draws the calls; the same seed, the same answer")
	flags.Var((*cli.Folder)(&f.out), "out", "`folder` for report.html and what-if.json")
}

// read checks the flags.
func (f *whatIfFlags) read() (err error) {
	if f.rate == "" {
		return errors.New("for which rate? give --rate, such as --rate 300")
	}
	profile, err := traffic.ParseRate(f.rate, time.Second)
	if err != nil {
		return fmt.Errorf("--rate %.80q: %w", f.rate, err)
	}
	if len(profile) != 1 || profile[0].From != profile[0].To {
		return fmt.Errorf("--rate %.80q: want one rate, such as 300", f.rate)
	}
	f.Rate = profile[0].From
	if f.Slots, err = whatif.ParseNumbers(cmp.Or(f.slots, "1")); err != nil {
		return fmt.Errorf("--slots %w", err)
	}
	if f.workers != "" {
		if f.Workers, err = whatif.ParseNumbers(f.workers); err != nil {
			return fmt.Errorf("--workers %w", err)
		}
	}
	if len(f.fail) > 0 {
		if f.Thresholds, err = goal.Parse(f.fail); err != nil {
			return err
		}
	}
	switch {
	case f.echo != 0 && f.times == "":
		return errors.New("--echo is for --service-times: with an address it is measured")
	case len(f.pids) > 0 && f.times != "":
		return errors.New("--pid is for an address: with --service-times nobody is called")
	case f.calibration.Workers < 1:
		return fmt.Errorf("--behind %d: want 1 or more", f.calibration.Workers)
	case f.Queue.Length < 0 || f.Queue.Timeout < 0:
		return errors.New("--queue and --queue-timeout: want 0 or more")
	}
	f.calibration.Slots, f.calibration.Seed = f.Slots, f.Seed
	if f.out != "" {
		if err := lab.MakeFolder(f.out); err != nil {
			return fmt.Errorf("--out: %w", err)
		}
	}
	return nil
}

// learn finds out the service times.
func (f *whatIfFlags) learn(ctx context.Context, args []string, stdin io.Reader, stderr io.Writer) (err error) {
	if f.times != "" {
		text, err := readTimes(f.times)
		if err != nil {
			return cli.UsageError(fmt.Errorf("--service-times: %w", err))
		}
		f.service = filepath.Base(f.times)
		f.Calibrations, err = whatif.ReadTimes(f.times, text, f.echo)
		if f.slots == "" {
			f.Slots = whatif.SlotsOf(f.Calibrations, f.Slots)
		}
		return cli.UsageError(err)
	}
	l := lab.Load{
		Address: args[0], Method: args[1], Proto: f.proto, Strategy: caller.Single(), WorkerKey: f.calibration.TimeKey,
		Plan: traffic.Plan{Seed: f.Seed}, PIDs: f.pids,
	}
	if l.Metadata, err = parseMetadata(f.metadata); err != nil {
		return cli.UsageError(err)
	}
	if l.Credentials, err = f.tls.Credentials(); err != nil {
		return cli.UsageError(err)
	}
	if l.Data.Name, l.Data.Text, err = readData(f.data, stdin); err != nil {
		return cli.UsageError(err)
	}
	p, err := l.Prepare(ctx)
	if err != nil {
		return cli.UsageError(f.tls.Explain(err))
	}
	defer p.Close()
	f.service = strings.TrimPrefix(l.Method, "/") + " of " + l.Address
	fmt.Fprintf(stderr, "measuring %s; Ctrl-C ends it\n", f.service)
	progress := newLoadProgress(stderr)
	f.Calibrations, err = p.Calibrate(ctx, f.calibration, progress.show)
	progress.clear()
	f.machine = []string{lab.Machine()}
	return err
}

// mostTimes bounds what --service-times takes.
const mostTimes = 64 << 20

func readTimes(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, mostTimes+1))
	if err == nil && len(text) > mostTimes {
		err = fmt.Errorf("%s: more than %d MiB", path, mostTimes>>20)
	}
	return text, err
}

// ask simulates, and shows how far that is.
func (f *whatIfFlags) ask(ctx context.Context, stderr io.Writer) (*whatif.Answer, error) {
	screen := cli.ScreenOf(stderr)
	shown := false
	answer, err := f.Ask(ctx, func(p whatif.Progress) {
		if screen.InPlace {
			shown = true
			fmt.Fprintf(stderr, "\r\x1b[Ksimulating, %d of %d", p.Done, p.All)
		}
	})
	if shown {
		fmt.Fprint(stderr, "\r\x1b[K")
	}
	if err != nil && ctx.Err() == nil {
		err = cli.UsageError(err)
	}
	return answer, err
}

// tell writes the answer.
func (f *whatIfFlags) tell(w report.WhatIf, stdout io.Writer) error {
	for _, line := range w.Summary() {
		fmt.Fprintln(stdout, line)
	}
	table := w.Figures()
	fmt.Fprintln(stdout)
	if _, err := table.WriteTo(stdout); err != nil {
		return err
	}
	if f.out != "" {
		if err := lab.SaveWhatIf(f.out, w.Answer); err != nil {
			return err
		}
		fmt.Fprintf(stdout, "\nThe report is %s.\n", filepath.Join(f.out, lab.ReportFile))
	}
	if len(f.Thresholds) > 0 && !w.Holds() {
		return errMissed
	}
	return nil
}
