package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/cabrank/cabrank/internal/admin"
	"github.com/cabrank/cabrank/internal/cli"
	"github.com/cabrank/cabrank/internal/page"
)

// pageIdle is how long the page waits for a viewer.
const pageIdle = 10 * time.Minute

const pageHelp = `Serve a page that shows what a running cabrank does: its workers, plots of the last ten
minutes, events, and buttons to restart, scale, drain and reload. It is served on
127.0.0.1 only, by this command, and asks the control socket: the cabrank that is
looked at opens no port, and does nothing while nobody looks.

The address that is printed has a token in it. Who has it can do what the buttons do,
unless --read-only is given. The page ends with Ctrl-C, with its input (kubectl exec -i),
or ten minutes after the last viewer has left.

Exit status: 0; 2 if there is no cabrank, or the port is taken.`

const pageExamples = `  cabrank page
  cabrank page --read-only --port 7171

  # of a pod: the first in one shell, the second in another one
  kubectl exec -i deploy/shop -- cabrank page
  kubectl port-forward deploy/shop 7070`

func newPageCommand() *cobra.Command {
	var with asking
	var port uint16
	var readOnly bool
	cmd := &cobra.Command{
		Use:     "page",
		Short:   "Show a running cabrank in a browser",
		Long:    pageHelp,
		Example: pageExamples,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return with.with(cmd, func(ctx context.Context, client *admin.Client) error {
				if _, _, err := client.Status(ctx); err != nil {
					return err
				}
				on, err := new(net.ListenConfig).Listen(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
				if err != nil {
					return cli.UsageError(fmt.Errorf("%w; --port chooses another one, 0 one that is free", err))
				}
				o := page.Options{Socket: client.Path(), Token: rand.Text(), ReadOnly: readOnly, Idle: pageIdle}
				fmt.Fprintf(cmd.OutOrStdout(), "http://%s/#%s\n", on.Addr(), o.Token)
				return page.New(o).Serve(untilInputEnds(ctx, os.Stdin), on)
			})
		},
	}
	with.addSocketTo(cmd)
	cmd.Flags().Uint16Var(&port, "port", 7070, "`PORT` of 127.0.0.1; 0: one that is free")
	cmd.Flags().BoolVar(&readOnly, "read-only", false, "show, and give no orders")
	return cmd
}

// untilInputEnds is a context that ends with its parent, or when who has started this command has
// closed its input: a pipe or a socket. A terminal has signals, and with /dev/null nobody is there.
func untilInputEnds(ctx context.Context, in *os.File) context.Context {
	info, err := in.Stat()
	if err != nil || info.Mode()&(os.ModeNamedPipe|os.ModeSocket) == 0 {
		return ctx
	}
	ctx, end := context.WithCancel(ctx)
	go func() {
		defer end()
		_, _ = io.Copy(io.Discard, in) // ends with the process at last
	}()
	return ctx
}
