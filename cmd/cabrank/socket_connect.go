package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/cabrank/cabrank/internal/cli"
)

const socketConnectHelp = `Call, publish and subscribe by hand, over WebSockets. Lines of standard input are
commands, "help" lists them. On a terminal there are a history (arrow keys) and completion
(Tab), and what comes is shown at once. Otherwise it is a script: each command waits for
its answer, the last one ends the connection, and # begins a comment.

Each message that goes out is a line that begins with >, each that comes in one with <,
with the id of the request that it is for. ! is a call that has expired.

"use NAME" has the commands behind it go over another connection, which "connect" opens
there; what comes over it begins with the name. There are 100 at most.

Exit status: 0 if all went well; 1 if the connection could not be opened or was lost, or a
request of a script was refused, has expired or was answered with an error; 2 if the
command line or a line of a script is wrong.`

const socketConnectExamples = `  # by hand
  cabrank socket connect ws://localhost:9000/ws

  # what is published on all channels of news, until Ctrl-C
  echo 'psub news.*
  wait' | cabrank socket connect ws://localhost:9000/ws --time

  # two connections: one subscribes, one publishes
  cabrank socket connect ws://localhost:9000/ws <<'END'
  sub news
  use other
  connect ws://localhost:9000/ws
  pub news "hello"
  END

  # one call
  echo 'call test.reverse "abc"' | cabrank socket connect ws://localhost:9000/ws`

// socketConnect is the flags of cabrank socket connect.
type socketConnect struct {
	dial    cli.Dial
	timeout time.Duration
	times   bool
}

func newSocketConnectCommand() *cobra.Command {
	var f socketConnect
	cmd := &cobra.Command{
		Use:     "connect [URL]",
		Short:   "Call, publish and subscribe by hand or by a script",
		Long:    socketConnectHelp,
		Example: socketConnectExamples,
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			options, err := f.dial.Options()
			if err == nil && f.timeout <= 0 {
				err = errors.New("--timeout must be above 0")
			}
			if err != nil {
				return cli.UsageError(err)
			}
			options.CallTimeout = f.timeout
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			s := newSocketShell(options, cmd.OutOrStdout(), f.times)
			defer s.closeAll()
			if len(args) > 0 {
				if err := s.connect(ctx, args[0]); err != nil {
					return err
				}
			}
			if stdin, isFile := cmd.InOrStdin().(*os.File); isFile && term.IsTerminal(int(stdin.Fd())) {
				return s.talk(ctx, stdin)
			}
			return s.script(ctx, cmd.InOrStdin())
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.DurationVar(&f.timeout, "timeout", 5*time.Second, "how long a call or another request may take, if its line does not say")
	flags.BoolVar(&f.times, "time", false, "begin lines with the time of day")
	f.dial.AddTo(flags)
	return cmd
}

// keyboard is both ends of a terminal.
type keyboard struct {
	io.Reader
	io.Writer
}

// talk does what people type, until they leave.
func (s *socketShell) talk(ctx context.Context, stdin *os.File) error {
	state, err := term.MakeRaw(int(stdin.Fd()))
	if err != nil {
		return err
	}
	defer term.Restore(int(stdin.Fd()), state) //nolint:errcheck // there is nothing else to be done
	t := term.NewTerminal(keyboard{stdin, s.out.to}, "cabrank> ")
	if width, height, err := term.GetSize(int(stdin.Fd())); err == nil && width > 0 {
		_ = t.SetSize(width, height) // else it is 80 columns
	}
	t.AutoCompleteCallback = func(line string, pos int, key rune) (string, int, bool) {
		if key != '\t' {
			return "", 0, false
		}
		return s.complete(line, pos)
	}
	s.out.redirect(t) // it writes above the line that is typed
	defer s.out.redirect(s.out.to)
	s.beside = true
	for {
		line, err := nextLine(ctx, t.ReadLine)
		if errors.Is(err, io.EOF) || ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if err := s.do(ctx, line); errors.Is(err, errExit) {
			return nil
		} else if err != nil && !isShown(err) {
			s.out.line(err.Error())
		}
	}
}

// nextLine returns a line, or the end of ctx while there is none.
func nextLine(ctx context.Context, read func() (string, error)) (string, error) {
	type answer struct {
		line string
		err  error
	}
	came := make(chan answer, 1)
	go func() { // ends with the line, or with the process
		line, err := read()
		came <- answer{line, err}
	}()
	select {
	case a := <-came:
		return a.line, a.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}
