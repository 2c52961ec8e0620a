package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cabrank/cabrank/internal/admin"
	"github.com/cabrank/cabrank/internal/cli"
	"github.com/cabrank/cabrank/internal/config"
	"github.com/cabrank/cabrank/internal/service"
)

const runHelp = `Start workers and relay calls to them until a signal asks to stop.

CMD is started once per worker, directly and not by a shell. In its arguments
{addr} stands for the worker's address (127.0.0.1:9000 or unix:/path), {host} and
{port} for its parts, {index} for its number from 0, {worker} for its name, {slots}
for the calls that it gets at a time, {threads} for the threads that it should have,
and {metrics_port} for its metrics page; the environment has CABRANK_ADDR, PORT,
CABRANK_SLOTS and CABRANK_THREADS. Without CMD it is workers.command, or:

  %s

Every flag can also be set by the variable behind it or in the file; see
cabrank help configuration.`

const runExamples = `  cabrank run -- bundle exec gruf --host {addr} --health-check
  cabrank run --workers 8 --transport unix -- node server.js
  cabrank run --listen :0 --probes off --metrics off -- python worker.py --port {port}
  cabrank run --upstream 10.0.0.7:50051,10.0.0.8:50051`

func newRunCommand() *cobra.Command {
	given := flagValues{}
	cmd := &cobra.Command{
		Use:                   "run [flags] [-- CMD ARGS...]",
		Short:                 "Start workers and relay calls to them",
		Long:                  fmt.Sprintf(runHelp, strings.Join(config.DefaultCommand(), " ")),
		Example:               runExamples,
		Args:                  commandAfterDash,
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			return run(cmd.Context(), given, args, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	given.addTo(cmd.Flags())
	return cmd
}

// run is `cabrank run`.
func run(ctx context.Context, given flagValues, command []string, stdout, stderr io.Writer) error {
	return service.Run(ctx, service.Options{
		Build: build(), Stdout: stdout, Stderr: stderr,
		Load: func() (*config.Config, error) { return loadConfig(given, command) },
		Log:  func() config.Log { return config.LoadLog(sourcesOf(given, command)) },
	})
}

// build is what the linker has stamped this program with.
func build() admin.Build { return admin.Build{Version: version, Commit: commit} }

// loadConfig makes the configuration out of this process's surroundings, the
// flags and the command after "--".
func loadConfig(given flagValues, command []string) (*config.Config, error) {
	cfg, err := config.Load(sourcesOf(given, command))
	return cfg, cli.UsageError(err)
}

func sourcesOf(given flagValues, command []string) config.Sources {
	sources := config.System()
	sources.Flags, sources.Command = given, command
	return sources
}

// commandAfterDash refuses arguments before "--": in `cabrank run ruby -v` the
// -v would be ours.
func commandAfterDash(cmd *cobra.Command, args []string) error {
	dash := cmd.ArgsLenAtDash()
	if dash == 0 || len(args) == 0 {
		return nil
	}
	return fmt.Errorf("unexpected argument %q; the command of the workers follows --, as in %s -- %s", args[0], cmd.CommandPath(), args[0])
}

// flagValues has the flags that were given, by name without dashes. Their
// arguments are taken as text: the table of keys checks them, so that a value
// is judged in the same words whichever way it came.
type flagValues map[string]string

// addTo defines every flag of the table of keys.
func (v flagValues) addTo(flags *pflag.FlagSet) {
	flags.SortFlags = false // the table's order tells more than the alphabet
	flags.Var(&flagValue{v, config.Key{Flag: config.ConfigFlag, Arg: "FILE"}}, config.ConfigFlag,
		"file to read, else ./cabrank.yml or ./gruf-relay.yml if there is one ["+config.ConfigVariable+"]")
	for _, key := range config.Flags() {
		v.add(flags, key)
	}
}

// add defines the flag of a key.
func (v flagValues) add(flags *pflag.FlagSet, key config.Key) {
	usage := key.Help
	if key.Env != "" {
		usage += " [" + key.Env + "]"
	}
	defined := flags.VarPF(&flagValue{v, key}, key.Flag, "", usage)
	if key.Switch() {
		defined.NoOptDefVal = "true"
	}
}

// flagValue is one flag on its way into flagValues. It implements pflag.Value.
type flagValue struct {
	given flagValues
	key   config.Key
}

// String returns the default, which pflag asks for once to show it.
func (f *flagValue) String() string {
	if f.key.Repeats() {
		return "" // an empty list need not be shown
	}
	return f.key.Default
}

// Set takes the argument of one occurrence; of a list each adds to it.
func (f *flagValue) Set(argument string) error {
	if before, again := f.given[f.key.Flag]; again && f.key.Repeats() {
		argument = before + "," + argument
	}
	f.given[f.key.Flag] = argument
	return nil
}

// Type returns how help names the argument.
func (f *flagValue) Type() string {
	if f.key.Switch() {
		return "bool" // which needs none
	}
	return f.key.Arg
}
