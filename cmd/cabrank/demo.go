package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/cabrank/cabrank/internal/demo"
	"github.com/cabrank/cabrank/internal/handover"
)

const (
	demoWorkers = 3
	demoCalls   = 12
	// demoInFlight is how many calls `demo --once` has open at a time: one
	// for each worker.
	demoInFlight = demoWorkers
	demoListen   = "localhost:8080"
	// demoTimeout bounds `demo --once`, and `demo call` for each call.
	demoTimeout = 60 * time.Second
)

// newDemoCommand returns `cabrank demo` with its subcommands worker and call.
func newDemoCommand() *cobra.Command {
	doors := demoDoors{listen: demoListen, metrics: "localhost:9394", probes: "localhost:5555"}
	once := false
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run cabrank over three built-in workers and see calls spread",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if once {
				return demoOnce(cmd.Context(), cmd.OutOrStdout())
			}
			return demoRun(cmd.OutOrStdout(), doors)
		},
	}
	cmd.Flags().StringVar(&doors.listen, "listen", doors.listen, "`HOST:PORT` where callers connect")
	cmd.Flags().StringVar(&doors.metrics, "metrics", doors.metrics, "`HOST:PORT` of the metrics page, or off")
	cmd.Flags().StringVar(&doors.probes, "probes", doors.probes, "`HOST:PORT` of the probes, or off")
	cmd.Flags().BoolVar(&once, "once", once, "start on a free port, make 12 calls, print who answered, stop")
	cmd.AddCommand(newDemoWorkerCommand(), newDemoCallCommand())
	return cmd
}

// demoDoors are the addresses of the demo's relay, in the form of the flags of
// `cabrank run`.
type demoDoors struct{ listen, metrics, probes string }

// demoRun becomes `cabrank run`: the same process, so that Ctrl-C, signals and
// the exit code are those of a real relay.
func demoRun(out io.Writer, doors demoDoors) error {
	command, err := demoCommand("--listen", doors.listen, "--metrics", doors.metrics, "--probes", doors.probes)
	if err != nil {
		return err
	}
	style := demo.StyleFor(out)
	fmt.Fprintln(out, style.Title("Three workers behind "+doors.listen+". In another terminal, try:"))
	lines := []string{
		demoCallLine(doors.listen),
		`grpcurl -plaintext -d '{"name": "you"}' ` + doors.listen + " cabrank.demo.v1.Greeter/SayHello",
	}
	if doors.metrics != "off" {
		lines = append(lines, "curl http://"+doors.metrics+"/metrics")
	}
	for _, line := range lines {
		fmt.Fprintln(out, "  "+style.Command(line))
	}
	fmt.Fprintln(out, "Ctrl-C stops everything.")
	return fmt.Errorf("start the relay: %w", syscall.Exec(command[0], command, os.Environ()))
}

// demoCallLine is what calls the demo, by the name under which this binary was
// called: bin/cabrank is not in everybody's PATH.
func demoCallLine(listen string) string {
	line := os.Args[0] + " demo call"
	if listen != demoListen {
		line += " --addr " + listen
	}
	return line
}

// demoOnce makes demoCalls calls over one connection and prints the share of
// each worker; a worker without a share is an error.
func demoOnce(ctx context.Context, out io.Writer) error {
	ctx, cancel := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer cancel()
	ctx, cancel = context.WithTimeout(ctx, demoTimeout)
	defer cancel()
	// Unix sockets for the workers: nothing to collide with.
	command, err := demoCommand("--listen", "127.0.0.1:0", "--metrics", "off", "--probes", "off",
		"--transport", "unix", "--min-ready", strconv.Itoa(demoWorkers), "--log-format", "json")
	if err != nil {
		return err
	}
	relay, err := demo.StartRelay(ctx, command...)
	if err != nil {
		return err
	}
	share, err := demoShare(ctx, out, relay.Addr, demoCalls, demoInFlight, demoReady)
	if stopErr := relay.Stop(); err == nil {
		err = stopErr
	}
	if err == nil && len(share) < demoWorkers {
		err = fmt.Errorf("%d of %d workers answered", len(share), demoWorkers)
	}
	return err
}

// demoReady waits until the relay says that all its workers serve.
func demoReady(ctx context.Context, conn *grpc.ClientConn) error {
	changes, err := healthpb.NewHealthClient(conn).Watch(ctx, &healthpb.HealthCheckRequest{})
	for err == nil {
		var now *healthpb.HealthCheckResponse
		if now, err = changes.Recv(); now.GetStatus() == healthpb.HealthCheckResponse_SERVING {
			return nil
		}
	}
	return fmt.Errorf("wait for the workers: %w", err)
}

// demoCommand is this binary as a relay over the demo workers. It reads an empty
// file: a cabrank.yml in the working directory is about something else.
func demoCommand(flags ...string) ([]string, error) {
	self, err := handover.Program()
	if err != nil {
		return nil, fmt.Errorf("path of this program: %w", err)
	}
	command := []string{self, "run", "--config", os.DevNull, "--workers", strconv.Itoa(demoWorkers)}
	command = append(command, flags...)
	return append(command, "--", self, "demo", "worker"), nil
}

func newDemoWorkerCommand() *cobra.Command {
	opts := demo.WorkerOptions{
		Addr: cmp.Or(os.Getenv("CABRANK_ADDR"), "127.0.0.1:50051"),
		Name: cmp.Or(os.Getenv("CABRANK_WORKER"), "worker"),
		Work: 20 * time.Millisecond,
	}
	cmd := &cobra.Command{
		Use:   "worker",
		Short: "Serve the demo's greeter at $CABRANK_ADDR",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			return demo.Serve(ctx, opts)
		},
	}
	cmd.Flags().DurationVar(&opts.Work, "work", opts.Work, "how long each greeting takes")
	return cmd
}

func newDemoCallCommand() *cobra.Command {
	addr, calls, inFlight := demoListen, demoCalls, 1
	cmd := &cobra.Command{
		Use:   "call",
		Short: "Call the demo over one connection and see which worker answers",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			share, err := demoShare(ctx, cmd.OutOrStdout(), addr, calls, inFlight, nil)
			if len(share) == 0 && unreached(err) {
				return fmt.Errorf("nothing answers at %s: start `cabrank demo` first, or name another --addr", addr)
			}
			return err
		},
	}
	cmd.Flags().StringVar(&addr, "addr", addr, "`HOST:PORT` of cabrank")
	cmd.Flags().IntVarP(&calls, "calls", "n", calls, "how many calls")
	cmd.Flags().IntVarP(&inFlight, "concurrency", "c", inFlight, "how many calls at once")
	return cmd
}

// unreached reports whether a call failed for want of a cabrank. Nothing but
// the text tells its own UNAVAILABLE from that of the client library.
func unreached(err error) bool {
	return status.Code(err) == codes.Unavailable && !strings.Contains(err.Error(), "cabrank: ")
}

func demoDial(addr string) (*grpc.ClientConn, error) {
	return grpc.NewClient(addr, grpc.WithNoProxy(), grpc.WithTransportCredentials(insecure.NewCredentials()))
}

// demoShare makes calls over one connection, when it is ready, if that is asked for. It
// prints each answer as it comes and then the share of each worker.
func demoShare(ctx context.Context, out io.Writer, addr string, calls, inFlight int, ready func(context.Context, *grpc.ClientConn) error) (demo.Share, error) {
	conn, err := demoDial(addr)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	if ready != nil {
		if err := ready(ctx, conn); err != nil {
			return nil, err
		}
	}
	share := demo.Share{}
	err = demo.Call(ctx, conn, calls, inFlight, func(a demo.Answer) {
		share[a.Worker]++
		fmt.Fprintf(out, "call %3d  %-10s %4d ms  %s\n", a.Number, a.Worker, a.Took.Milliseconds(), a.Message)
	})
	if err != nil {
		return share, err
	}
	style := demo.StyleFor(out)
	fmt.Fprintln(out, style.Title(fmt.Sprintf("%d calls over one connection:", calls)))
	share.Print(out, style)
	return share, nil
}
