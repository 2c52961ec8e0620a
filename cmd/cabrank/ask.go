package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/cabrank/cabrank/internal/admin"
	"github.com/cabrank/cabrank/internal/cli"
)

// controlVariable names the socket when no flag does. It is also the variable of
// the key control, so that one line in an environment serves both sides.
const controlVariable = "CABRANK_CONTROL"

// serviceControl is the socket of the service on this host, as its unit has it.
const serviceControl = "/run/cabrank/control.sock"

// asking is what all commands share that talk to a running cabrank.
type asking struct {
	control string
	json    bool
	force   bool // of the commands that have a flag for it: calls are to be cut
}

func (a *asking) addTo(cmd *cobra.Command) {
	a.addSocketTo(cmd)
	cmd.Flags().BoolVar(&a.json, "json", false, "print what cabrank answers, one JSON object a line")
}

// addSocketTo adds the flag that says who is asked.
func (a *asking) addSocketTo(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.control, "control", "", "its control socket, a `PATH` ["+controlVariable+"] (default the only one in the runtime folder of this user, else "+serviceControl+")")
}

// addForceTo adds the flag by which calls are not waited for.
func (a *asking) addForceTo(cmd *cobra.Command, name string) {
	cmd.Flags().BoolVar(&a.force, name, false, "do not wait for calls: they are answered UNAVAILABLE")
}

// order makes a command that has a running cabrank do what it is called, as the request
// says that its arguments make.
func (a *asking) order(cmd *cobra.Command, request func(args []string) (any, error)) *cobra.Command {
	a.addTo(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		asked, err := request(args)
		if err != nil {
			return cli.UsageError(err)
		}
		return a.with(cmd, func(ctx context.Context, client *admin.Client) error { return a.ask(ctx, cmd, client, asked) })
	}
	return cmd
}

// with does something with the cabrank that is meant, until the user does not want to wait
// any longer.
func (a *asking) with(cmd *cobra.Command, do func(ctx context.Context, client *admin.Client) error) error {
	client, err := a.client()
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	return answered(do(ctx, client))
}

// client finds the cabrank that is meant. The error is one line, with the exit
// status of a wrong command line: there was nobody to do anything.
func (a *asking) client() (*admin.Client, error) {
	path, from := a.control, "flag --control"
	if path == "" {
		path, from = os.Getenv(controlVariable), "variable "+controlVariable
	}
	switch path {
	case "", "auto":
		return onlyClient(admin.ControlFolders(), serviceControl)
	case "off":
		return nil, cli.UsageError(fmt.Errorf("%s: off is no socket; --control names that of a cabrank", from))
	}
	return admin.NewClient(path), nil
}

// onlyClient finds the only cabrank of this user where one started from here would
// listen, else the service of this host, for who may reach that. Others are named and
// not asked: a stop must not meet the wrong one.
func onlyClient(folders []string, service string) (*admin.Client, error) {
	switch found := admin.FindControl(folders[:1]); len(found) {
	case 0:
		if admin.Listens(service) {
			return admin.NewClient(service), nil
		}
		hint := "is cabrank running? --control names a socket elsewhere"
		if elsewhere := admin.FindControl(folders[1:]); len(elsewhere) > 0 {
			hint = "is one of these meant? --control " + strings.Join(elsewhere, ", --control ")
		}
		return nil, cli.UsageError(fmt.Errorf("nothing listens in %s; %s", folders[0], hint))
	case 1:
		return admin.NewClient(found[0]), nil
	default:
		return nil, cli.UsageError(fmt.Errorf("several cabranks run: choose one with --control, of %s", strings.Join(found, ", ")))
	}
}

// ask gives the order that a command is called by, and shows what comes of it.
func (a *asking) ask(ctx context.Context, cmd *cobra.Command, client *admin.Client, request any) error {
	show := newProgress(cmd.OutOrStdout(), cmd.Name(), time.Now())
	cut := 0
	err := client.Do(ctx, cmd.Name(), request, func(line []byte, e admin.Event) {
		cut = e.CallsCut
		if a.json {
			fmt.Fprintf(cmd.OutOrStdout(), "%s\n", line)
		} else {
			show.event(e)
		}
	})
	show.end()
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("not waiting any longer: the %s goes on; cabrank status shows how far it is", cmd.Name())
	}
	if err == nil && cut > 0 && !a.force {
		return cli.ErrCut
	}
	return err
}

// answered gives an error of a client the exit status that it means.
func answered(err error) error {
	if errors.Is(err, context.Canceled) {
		return errors.New("not waiting for an answer any longer")
	}
	if nobody, ok := errors.AsType[*admin.NobodyError](err); ok {
		return cli.UsageError(nobody)
	}
	if remote, ok := errors.AsType[*admin.RemoteError](err); ok && remote.Misuse {
		return cli.UsageError(remote)
	}
	return err
}

// oneArgument refuses everything but one argument, and says what that is.
func oneArgument(what, example string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 {
			return nil
		}
		return fmt.Errorf("%d arguments; one is needed: %s, as in %s %s", len(args), what, cmd.CommandPath(), example)
	}
}

// numberOfWorkers reads one.
func numberOfWorkers(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("%q is no number of workers; allowed: 1 and more", text)
	}
	return n, nil
}

// progress shows the events of a command: a line for each, or on a terminal one
// line that changes.
type progress struct {
	out     io.Writer
	command string
	began   time.Time
	screen  cli.Screen
	open    bool // a line stands that the next one replaces
}

func newProgress(out io.Writer, command string, now time.Time) *progress {
	return &progress{out: out, command: command, began: now, screen: cli.ScreenOf(out)}
}

// event shows one event. The last one of a failed command is left to the error.
func (p *progress) event(e admin.Event) {
	switch {
	case e.Error != "":
		if e.CallsCut > 0 {
			p.lasting(cutText(e.CallsCut) + "\n")
		}
	case e.Reload != nil:
		p.lasting(reloadText(*e.Reload))
	case e.Done:
		text := fmt.Sprintf("%s done in %s", p.command, brief(time.Since(p.began)))
		if e.CallsCut > 0 {
			text += ", " + cutText(e.CallsCut)
		}
		p.lasting(text + "\n")
	case e.LimitSeconds > 0: // what is promised stays to be read
		p.lasting(e.Text() + fmt.Sprintf(", at most %s\n", brief(time.Duration(e.LimitSeconds*float64(time.Second)))))
	default:
		p.passing(e.Text())
	}
}

// cutText is "2 calls were cut".
func cutText(calls int) string {
	if calls == 1 {
		return "1 call was cut"
	}
	return cli.Plural(calls, "call") + " were cut"
}

// lasting writes lines that stay.
func (p *progress) lasting(lines string) {
	p.clear()
	fmt.Fprint(p.out, lines)
}

// passing writes a line that the next one replaces, where there is a terminal.
func (p *progress) passing(line string) {
	if !p.screen.Terminal {
		fmt.Fprintln(p.out, line)
		return
	}
	p.clear()
	fmt.Fprint(p.out, p.screen.Fit(line))
	p.open = true
}

func (p *progress) clear() { p.leave("\r\x1b[K") }

// end leaves the cursor at the beginning of a line, below what was shown last.
func (p *progress) end() { p.leave("\n") }

// leave writes what ends a line that stands to be replaced.
func (p *progress) leave(by string) {
	if p.open {
		fmt.Fprint(p.out, by)
		p.open = false
	}
}

// completeWorkers offers what can be drained, to shells that ask.
func (a *asking) completeWorkers(cmd *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	_ = a.with(cmd, func(ctx context.Context, client *admin.Client) error { // without an answer nothing is offered
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		status, _, err := client.Status(ctx)
		for _, worker := range status.Workers {
			names = append(names, worker.Name)
		}
		for _, upstream := range status.Upstreams {
			names = append(names, upstream.Address)
		}
		return err
	})
	return names, cobra.ShellCompDirectiveNoFileComp
}
