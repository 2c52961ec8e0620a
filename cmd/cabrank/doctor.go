package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/cabrank/cabrank/internal/admin"
	"github.com/cabrank/cabrank/internal/cli"
	"github.com/cabrank/cabrank/internal/doctor"
)

const (
	// lookEvery is how often doctor looks, as often as the number of workers is decided.
	lookEvery = 250 * time.Millisecond
	// Less than leastLook tells nothing of the load, and more than mostLook is for plots.
	leastLook, mostLook = time.Second, 10 * time.Minute
	// lookLimit is how long a cabrank may take to answer.
	lookLimit = 5 * time.Second
	// longestLook bounds a line of a saved file, in bytes.
	longestLook = 8 << 20
)

// errFound is the end of a doctor who has found something.
var errFound = errors.New("something was found")

const doctorHelp = `Look at a running cabrank for ten seconds and say what is wrong, the worst first: each with
the figures that show it and with one command or key that helps. It asks the control
socket, changes nothing and makes no calls.

It finds workers that end again and again, hang, are slow or too few (and how many would do),
slots that the workers' threads cannot serve, deadlines that pass in the queue, files and
memory near their limits, a certificate that expires, metrics pages that cannot be read,
and callers without deadlines or with a connection for each call.

--save keeps what was seen, for someone else to look at: --from reads it again.

Exit status: 0 if nothing was found; 1 if something was, or cabrank went away; 2 if there is
none.`

const doctorExamples = `  cabrank doctor
  cabrank doctor --json | jq -r '.findings[] | .name'

  # of a pod, and what it has seen
  kubectl exec deploy/shop -- cabrank doctor
  cabrank doctor --save seen.json; cabrank doctor --from seen.json`

func newDoctorCommand() *cobra.Command {
	var with asking
	d := doctoring{limit: lookLimit}
	cmd := &cobra.Command{
		Use:     "doctor",
		Short:   "Find what is wrong with a running cabrank",
		Long:    doctorHelp,
		Example: doctorExamples,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, of := range []string{"save", "for", "control"} {
				if d.from != "" && cmd.Flags().Changed(of) {
					return cli.UsageError(fmt.Errorf("flags --from and --%s: --from looks at nothing that runs", of))
				}
			}
			if d.time < leastLook || d.time > mostLook {
				return cli.UsageError(fmt.Errorf("flag --for: %v; allowed: %v to %v", d.time, leastLook, mostLook))
			}
			looks, err := d.looks(cmd, &with)
			if err != nil {
				return err
			}
			return d.tell(cmd.OutOrStdout(), looks, with.json)
		},
	}
	with.addSocketTo(cmd)
	cmd.Flags().BoolVar(&with.json, "json", false, "print the findings as one JSON object")
	cmd.Flags().DurationVar(&d.time, "for", 10*time.Second, "look for this `TIME`")
	cmd.Flags().StringVar(&d.from, "from", "", "look at what --save has kept in this `FILE`")
	cmd.Flags().StringVar(&d.save, "save", "", "keep what is seen in this `FILE`")
	return cmd
}

// doctoring is what the flags say.
type doctoring struct {
	time       time.Duration
	limit      time.Duration // for one look
	from, save string
}

// looks are those of a file, or of the time from now on.
func (d *doctoring) looks(cmd *cobra.Command, with *asking) ([]doctor.Look, error) {
	if d.from != "" {
		looks, err := readLooks(d.from)
		return looks, cli.UsageError(err)
	}
	client, err := with.client()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if cli.ScreenOf(cmd.ErrOrStderr()).InPlace {
		fmt.Fprintf(cmd.ErrOrStderr(), "looking at %s for %v; Ctrl-C ends it earlier\n", client.Path(), d.time)
	}
	looks, err := d.look(ctx, client)
	if err != nil {
		return nil, answered(err)
	}
	if d.save != "" {
		return looks, saveLooks(d.save, looks)
	}
	return looks, nil
}

// look looks again and again until the time is over or ctx ends. The first look and the last one
// have the status, too.
func (d *doctoring) look(ctx context.Context, client *admin.Client) (looks []doctor.Look, err error) {
	timeout, end := context.WithTimeout(ctx, d.time)
	defer end()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		over := timeout.Err() != nil
		look, err := d.lookOnce(ctx, client, over || len(looks) == 0)
		if err != nil && len(looks) > 0 {
			return nil, fmt.Errorf("cabrank went away while it was looked at: %v", err) //nolint:errorlint // that nobody is there is no fault of the command line now
		}
		if err != nil {
			return nil, err
		}
		if looks = append(looks, look); over {
			return looks, nil
		}
		select {
		case <-tick.C:
		case <-timeout.Done():
		}
	}
}

// lookOnce looks once, also when ctx has ended.
func (d *doctoring) lookOnce(ctx context.Context, client *admin.Client, status bool) (look doctor.Look, err error) {
	late := fmt.Errorf("the cabrank at %s has not answered within %v: is its process stopped?", client.Path(), d.limit)
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), d.limit, late)
	defer cancel()
	defer func() {
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
	}()
	if look.Live, err = client.Live(ctx); err != nil || !status {
		return look, err
	}
	now, _, err := client.Status(ctx)
	look.Status = &now
	return look, err
}

func readLooks(name string) (looks []doctor.Look, err error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, longestLook)
	for line := 1; lines.Scan(); line++ {
		var look doctor.Look
		if err := json.Unmarshal(lines.Bytes(), &look); err != nil || look.Live.PID == 0 {
			return nil, fmt.Errorf("%s, line %d: not what cabrank doctor --save has written", name, line)
		}
		looks = append(looks, look)
	}
	return looks, lines.Err()
}

func saveLooks(name string, looks []doctor.Look) error {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600) // lines of workers may tell of people
	if err != nil {
		return cli.UsageError(err)
	}
	buffered := bufio.NewWriter(file)
	encoder := json.NewEncoder(buffered)
	for _, look := range looks {
		if err := encoder.Encode(look); err != nil {
			return errors.Join(err, file.Close())
		}
	}
	return errors.Join(buffered.Flush(), file.Close())
}

// tell prints what was found.
func (d *doctoring) tell(out io.Writer, looks []doctor.Look, asJSON bool) error {
	found, err := doctor.Examine(looks)
	if err != nil {
		return err
	}
	seconds := looks[len(looks)-1].Live.Time.Sub(looks[0].Live.Time).Round(100 * time.Millisecond)
	if asJSON {
		if err := json.NewEncoder(out).Encode(map[string]any{"seconds": seconds.Seconds(), "findings": found}); err != nil {
			return err
		}
	} else {
		tellPeople(out, found, seconds)
	}
	if len(found) > 0 {
		return cli.Told(cli.Failed, errFound)
	}
	return nil
}

func tellPeople(out io.Writer, found []doctor.Finding, seconds time.Duration) {
	screen := cli.ScreenOf(out)
	if len(found) == 0 {
		fmt.Fprintln(out, screen.Paint(cli.Good, "nothing is wrong")+", as far as "+seconds.String()+" tell")
		return
	}
	colors := map[doctor.Level]cli.Color{doctor.Error: cli.Bad, doctor.Warning: cli.Changing}
	for _, f := range found {
		fmt.Fprintf(out, "%s %s\n", screen.Paint(colors[f.Level], fmt.Sprintf("%-8s", f.Level)), f.Says)
		for _, line := range f.Lines {
			fmt.Fprintf(out, "         | %s\n", line)
		}
		fmt.Fprintf(out, "         do: %s\n", f.Do)
	}
}
