package oneslot

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/emptypb"
)

const (
	// Method is what a call without a method of its own asks for. A worker takes every method: a
	// google.protobuf.Duration, the service time, is answered by a google.protobuf.Empty.
	Method = "/cabrank.bench.OneSlot/Work"

	// callKey is the metadata that carries the index of a call.
	callKey = "x-call"

	// refusal is what Ruby's server says when no thread is free.
	refusal = "No free threads in thread pool"
)

// Record is what a worker tells about one call that it has run to its end, whether or
// not somebody waited. Moments are of the monotonic clock.
type Record struct {
	Call    int           `json:"call"` // index in the trial, negative for none
	Worker  string        `json:"worker"`
	Began   time.Duration `json:"began"`
	Ended   time.Duration `json:"ended"`
	Overlap bool          `json:"overlap,omitempty"` // another call was here when it arrived
}

// WhenBusy is what a worker does with a call that arrives beside another one.
type WhenBusy string

// The ways of a busy worker.
const (
	Queue  WhenBusy = "run"    // it waits here and runs, whatever its caller does: a handler behind a lock
	Skip   WhenBusy = "skip"   // it waits here, and does not begin if its caller has gone: Python's pool
	Refuse WhenBusy = "refuse" // it is sent back: Ruby's pool
)

// Role as the first argument makes a test binary a worker (Run).
const Role = "one-slot-worker"

// worker runs one call at a time, by sleeping for as long as the call says. A call that has
// begun runs to its end, also when its caller leaves, as in the thread pools of Ruby and Python.
type worker struct {
	name       string
	busy       WhenBusy
	lag        time.Duration // how long after its answer a call still takes the slot
	stall      time.Duration // what each stallEvery-th call takes longer, none if that is 0
	stallEvery int
	records    *os.File // gets one line of JSON for each call, when it has ended

	here  atomic.Int32 // calls that run, lag included, or wait
	slot  sync.Mutex   // held while a call runs
	begun int          // calls that have begun; guarded by slot
}

// Run is a worker named $CABRANK_WORKER at $CABRANK_ADDR, with its records in a file of its
// name: it answers calls, and health checks beside the slot, until SIGTERM and then until the
// calls that have begun have ended.
func Run(args []string) error {
	w := &worker{name: os.Getenv("CABRANK_WORKER")}
	flags := flag.NewFlagSet(Role, flag.ContinueOnError)
	records := flags.String("records", "", "folder of the records")
	flags.StringVar((*string)(&w.busy), "busy", string(Queue), "what becomes of a call beside another one")
	flags.DurationVar(&w.lag, "lag", 0, "how long after its answer a call still takes the slot")
	flags.DurationVar(&w.stall, "stall", 0, "what some calls take longer")
	stalls := flags.String("stalls", "", "the worker where they do")
	flags.IntVar(&w.stallEvery, "stall-every", 0, "which")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if w.name != *stalls {
		w.stallEvery = 0
	}
	var err error
	if w.records, err = os.OpenFile(filepath.Join(*records, w.name), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600); err != nil {
		return err
	}
	network, addr := "tcp", os.Getenv("CABRANK_ADDR")
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		network, addr = "unix", path
	}
	l, err := net.Listen(network, addr)
	if err != nil {
		return err
	}
	server := grpc.NewServer(grpc.UnknownServiceHandler(w.call), grpc.WaitForHandlers(true))
	healthpb.RegisterHealthServer(server, health.NewServer())
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	context.AfterFunc(ctx, server.Stop) // Serve waits for it
	return server.Serve(l)
}

func (w *worker) call(_ any, stream grpc.ServerStream) error {
	record := Record{Call: callIndex(stream.Context()), Worker: w.name, Overlap: w.here.Add(1) > 1}
	var service durationpb.Duration
	err := stream.RecvMsg(&service)
	if err == nil {
		err = w.run(stream.Context(), service.AsDuration(), &record)
	}
	if err == nil && w.lag > 0 { // what is refused leaves at once
		go func() { // ends with the lag
			pause(w.lag)
			w.here.Add(-1)
		}()
	} else {
		w.here.Add(-1)
	}
	if err != nil {
		return err
	}
	if err := stream.SetHeader(metadata.Pairs("x-worker", w.name)); err != nil {
		return err
	}
	return stream.SendMsg(&emptypb.Empty{})
}

// run does the work of a call, or says why not.
func (w *worker) run(ctx context.Context, service time.Duration, record *Record) error {
	if w.busy == Refuse && record.Overlap {
		return status.Error(codes.ResourceExhausted, refusal)
	}
	w.slot.Lock()
	defer w.slot.Unlock()
	if w.busy == Skip && ctx.Err() != nil {
		return status.FromContextError(ctx.Err()).Err()
	}
	if w.begun++; w.stallEvery > 0 && w.begun%w.stallEvery == 0 {
		service += w.stall
	}
	record.Began = now()
	pause(service)
	record.Ended = now()
	return json.NewEncoder(w.records).Encode(record) // one write: a reader sees whole lines
}

func callIndex(ctx context.Context) int {
	index, err := strconv.Atoi(strings.Join(metadata.ValueFromIncomingContext(ctx, callKey), ","))
	if err != nil {
		return -1
	}
	return index
}

// ReadFolder reads all files of a folder in which workers have their records. A last line
// that is not whole yet is left out.
func ReadFolder(dir string) (all []Record, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		return nil, err
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		for line := range bytes.Lines(text[:bytes.LastIndexByte(text, '\n')+1]) {
			var r Record
			if err := json.Unmarshal(line, &r); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			all = append(all, r)
		}
	}
	return all, nil
}
