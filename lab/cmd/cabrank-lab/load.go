package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cabrank/cabrank/internal/cli"
	"github.com/cabrank/cabrank/lab/internal/caller"
	"github.com/cabrank/cabrank/lab/internal/lab"
	"github.com/cabrank/cabrank/lab/internal/method"
	"github.com/cabrank/cabrank/lab/internal/result"
)

const labLoadHelp = `Call one method of any gRPC service by a plan, and say what came of it.

--rate is an open loop: calls start when they are due, however slow the service is, as
those of many callers do; latency counts from that moment. --callers and --stages are
closed loops: each caller waits for its answer before its next call.

The service is asked for the method by reflection; --proto FILE takes its place. --data
is JSON with placeholders such as {{.RequestNumber}} and {{randomInt 1 1000}}. What else
each flag takes, and what is in the files: docs/lab-load.md.

--fail is a threshold, such as 'p99<100ms', 'errors<0.1%' or 'rate>=450'. --find begins at
--rate and looks for the highest rate at which all of them hold.

Ctrl-C ends the load and keeps what was measured.

Exit status: 0 if it ran and all thresholds held; 1 if one did not or could not be judged,
if nothing was answered, or if --find found no rate; 2 if the command line is wrong or
there is no such method, in which case no call was made.`

const labLoadExamples = `  # 500 calls a second for half a minute, whatever the answers
  cabrank lab load localhost:8080 demo.Jobs/GetJob --data '{"id": 1}' --rate 500 --duration 30s

  # the same as a check: exit status 1 if a threshold is missed
  cabrank lab load localhost:8080 demo.Jobs/GetJob --data '{"id": 1}' --rate 500 --duration 30s \
      --fail 'p99<100ms' --fail 'errors<0.1%'

  # the highest rate at which it holds
  cabrank lab load localhost:8080 demo.Jobs/GetJob --data '{"id": 1}' --rate 100 --duration 10s \
      --fail 'p99<100ms' --find

  # two methods: every fifth call is for another one
  cabrank lab load localhost:8080 demo.Jobs/GetJob --data '{"id": 1}' --rate 500 --duration 30s \
      --also '20% demo.Jobs/List {"page": {{randomInt 1 9}}}'

  # by Connect with JSON, over up to 20 connections of HTTP/1.1
  cabrank lab load localhost:8080 demo.Jobs/GetJob --data '{"id": 1}' --rate 500 --duration 30s \
      --protocol connect --codec json --http 1.1 --connections 20 --proto jobs.proto`

type loadFlags struct {
	loadPlan

	data, connections, worker string
	protocol, codec, http     string
	messages                  int
	proto                     method.Files
	metadata, also            []string
	tls                       cli.TLS
}

func newLabLoadCommand() *cobra.Command {
	var f loadFlags
	cmd := &cobra.Command{
		Use:     "load ADDRESS PACKAGE.SERVICE/METHOD",
		Short:   "Call one method of any gRPC service, and report latency and errors",
		Long:    labLoadHelp,
		Example: labLoadExamples,
		Args:    loadArguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := f.load(args[0], args[1], cmd.InOrStdin())
			if err != nil {
				return cli.UsageError(err)
			}
			return f.prepared(cmd, l.Plan, func(ctx context.Context) (*lab.Prepared, error) {
				p, err := l.Prepare(ctx)
				if err != nil {
					err = f.tls.Explain(err)
				}
				return p, err
			})
		},
	}
	f.addTo(cmd)
	return cmd
}

func loadArguments(_ *cobra.Command, args []string) error {
	switch {
	case len(args) < 2:
		return errors.New("which service? give its address and a method, such as localhost:8080 demo.Jobs/GetJob")
	case len(args) > 2:
		return fmt.Errorf("unexpected argument %q; requests go into --data", args[2])
	}
	return nil
}

func (f *loadFlags) addTo(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.data, "data", "", "requests as JSON, @`FILE`, or @- for standard input")
	flags.StringArrayVar(&f.also, "also", nil, "`SHARE METHOD DATA` of a further method, such as '20% demo.Jobs/List {}'; several are possible")
	flags.IntVar(&f.messages, "messages", 0, "messages that the caller sends in each call of a stream; 0: as many as --data lists")
	flags.StringArrayVar(&f.proto.Names, "proto", nil, "`.proto` file that describes the method, in place of reflection; several are possible")
	flags.StringArrayVar(&f.proto.Imports, "import-path", nil, "`folder` in which --proto and its imports are looked up")
	f.addPlanTo(flags)
	flags.StringVar(&f.connections, "connections", "single", "single, a number, per-call, or round-robin over the addresses of a name")
	flags.StringVar(&f.protocol, "protocol", caller.GRPC, strings.Join(caller.Protocols(), ", "))
	flags.StringVar(&f.codec, "codec", "", "how messages are written: proto (default) or json")
	flags.StringVar(&f.http, "http", "", "version of HTTP: 2 (default), or 1.1 with connect and grpc-web")
	f.tls.AddTo(flags)
	flags.StringArrayVar(&f.metadata, "metadata", nil, "`NAME:VALUE` to send with each call; several are possible")
	flags.StringVar(&f.worker, "worker-key", "", "header or trailer in which answers name their worker")
	f.addOutcomeTo(flags)
}

func (f *loadFlags) load(address, name string, stdin io.Reader) (l lab.Load, err error) {
	l = lab.Load{Calls: caller.Calls{Method: name, Files: f.proto}}
	l.Target, l.WorkerKey = address, f.worker
	if l.Strategy, err = caller.ParseStrategy(f.connections); err != nil {
		return l, fmt.Errorf("--%w", err)
	}
	if l.Way, err = caller.ParseWay(f.protocol, f.codec, f.http); err != nil {
		return l, fmt.Errorf("--%w", err)
	}
	if err := l.Way.Check(l.Strategy); err != nil {
		return l, fmt.Errorf("--%w", err)
	}
	if f.Most == 0 && f.Rate != "" {
		f.Most = l.Strategy.MostUnderWay()
	}
	if l.Plan, err = f.Plan(); err != nil {
		return l, err
	}
	if l.Metadata, err = caller.ParseMetadata(f.metadata); err != nil {
		return l, fmt.Errorf("--%w", err)
	}
	if l.TLS, err = f.tls.Config(); err != nil {
		return l, err
	}
	if err := f.readGoal(l.Plan); err != nil {
		return l, err
	}
	if l.Also, err = readAlso(f.also, stdin); err != nil {
		return l, err
	}
	data := &l.Calls.Data
	data.Messages = f.messages
	data.Name, data.Text, err = readData(f.data, stdin)
	return l, err
}

func readAlso(given []string, stdin io.Reader) (all []lab.Also, err error) {
	sum := 0.0
	for _, text := range given {
		a, err := lab.ParseAlso(text)
		if err != nil {
			return nil, err
		}
		if a.Data.Name, a.Data.Text, err = readData(string(a.Data.Text), stdin); err != nil {
			return nil, err
		}
		if sum += a.Share; sum >= 1 {
			return nil, errors.New("--also: the shares come to 100% or more, and nothing is left for the first method")
		}
		all = append(all, a)
	}
	return all, nil
}

// mostData bounds what --data @FILE takes.
const mostData = 64 << 20

func readData(given string, stdin io.Reader) (name string, text []byte, err error) {
	path, isFile := strings.CutPrefix(given, "@")
	switch {
	case given == "":
		return "", nil, errors.New("which requests? give --data '{}' for an empty message, or --data @FILE")
	case !isFile:
		return "--data", []byte(given), nil
	case path == "-":
		text, err = io.ReadAll(io.LimitReader(stdin, mostData+1))
		if err == nil && len(text) > mostData {
			err = fmt.Errorf("--data %s: more than %d MiB", given, mostData>>20)
		}
		return "standard input", text, err
	}
	if text, err = result.ReadFile(path, mostData); err != nil {
		return "", nil, fmt.Errorf("--data: %w", err)
	}
	return path, text, nil
}
