package oneslot

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
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
	// Method is what a call without a method of its own asks for. A Worker takes
	// every method: a google.protobuf.Duration, the service time, is answered
	// by a google.protobuf.Empty.
	Method = "/cabrank.bench.OneSlot/Work"

	// callKey is the metadata that carries the index of a call.
	callKey = "x-call"

	// refusal is what Ruby's server says when no thread is free.
	refusal = "No free threads in thread pool"
)

// Fate is what became of a call at a worker.
type Fate string

// The fates of a call.
const (
	Done    Fate = "done"    // ran to its end, whether or not somebody waited
	Refused Fate = "refused" // came while another one ran, and was sent back
	Skipped Fate = "skipped" // waited behind another one until its caller had gone, or never came in whole
)

// Record is what a worker tells about one call. Moments are of Now; Began and
// Ended are 0 if it did not run.
type Record struct {
	Call      int           `json:"call"` // index in the trial, negative for none
	Worker    string        `json:"worker"`
	Arrived   time.Duration `json:"arrived"`
	Began     time.Duration `json:"began,omitempty"`
	Ended     time.Duration `json:"ended,omitempty"`
	Fate      Fate          `json:"fate"`
	Overlap   bool          `json:"overlap,omitempty"`   // another call was here when it arrived
	Abandoned bool          `json:"abandoned,omitempty"` // its caller had gone when it ended
}

// WhenBusy is what a worker does with a call that arrives beside another one.
type WhenBusy string

// The ways of a busy worker.
const (
	Run    WhenBusy = "run"    // it waits here and runs, whatever its caller does: a handler behind a lock
	Skip   WhenBusy = "skip"   // it waits here, and does not begin if its caller has gone: Python's pool
	Refuse WhenBusy = "refuse" // it is sent back: Ruby's pool
)

// Worker runs one call at a time, by sleeping for as long as the call says. A
// call that has begun runs to its end, also when its caller leaves, as in the
// thread pools of Ruby and Python.
//
// Concurrency: the fields must not change once Serve has begun.
type Worker struct {
	Name string
	Busy WhenBusy // empty is Run
	// Lag is how long after its answer a call still takes the slot.
	Lag time.Duration
	// Stall is added to the service time of a share of the calls: every
	// StallEvery-th, none if that is 0.
	Stall      time.Duration
	StallEvery int
	// Records gets one line of JSON for each call, when it has ended.
	Records io.Writer

	slot chan struct{} // holds one element while a call runs; senders wait in order

	mu    sync.Mutex
	lags  sync.WaitGroup
	here  int // calls that run, lag included, or wait; guarded by mu
	begun int // calls that have begun; guarded by mu
}

// Run is Serve at an address (host:port or unix:/path) with Records in a file.
func (w *Worker) Run(ctx context.Context, addr, records string) (err error) {
	file, err := os.OpenFile(records, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	w.Records = file
	network := "tcp"
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		network, addr = "unix", path
	}
	l, err := net.Listen(network, addr)
	if err != nil {
		return err
	}
	return w.Serve(ctx, l)
}

// Serve answers calls, and health checks beside the slot, until ctx ends and
// then until the calls that have begun have ended.
func (w *Worker) Serve(ctx context.Context, l net.Listener) error {
	w.slot = make(chan struct{}, 1)
	server := grpc.NewServer(grpc.UnknownServiceHandler(w.call), grpc.WaitForHandlers(true))
	healthpb.RegisterHealthServer(server, health.NewServer())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }() // ends by Stop
	select {
	case <-ctx.Done():
	case err := <-ended:
		return err
	}
	server.Stop() // waits for the handlers
	w.lags.Wait()
	return nil
}

func (w *Worker) call(_ any, stream grpc.ServerStream) error {
	record := Record{Call: callIndex(stream.Context()), Worker: w.Name, Arrived: Now(), Overlap: !w.enter()}
	var service durationpb.Duration
	err := stream.RecvMsg(&service)
	if err == nil {
		err = w.run(stream.Context(), service.AsDuration(), &record)
	} else {
		record.Fate = Skipped
		w.leave(0)
	}
	w.write(record)
	if err != nil {
		return err
	}
	if err := stream.SetHeader(metadata.Pairs("x-worker", w.Name)); err != nil {
		return err
	}
	return stream.SendMsg(&emptypb.Empty{})
}

// enter counts a call in, and says whether it is the only one.
func (w *Worker) enter() (alone bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.here++
	return w.here == 1
}

// leave counts a call out, later if it lags.
func (w *Worker) leave(lag time.Duration) {
	if lag > 0 {
		w.lags.Go(func() {
			sleepUntil(Now() + lag) //nolint:errcheck // then it does not lag
			w.leave(0)
		})
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.here--
}

// run does the work of a call, or says why not.
func (w *Worker) run(ctx context.Context, service time.Duration, record *Record) error {
	if w.Busy == Refuse && record.Overlap {
		record.Fate = Refused
		w.leave(0)
		return status.Error(codes.ResourceExhausted, refusal)
	}
	defer w.leave(w.Lag)
	w.slot <- struct{}{}
	defer func() { <-w.slot }()
	if w.Busy == Skip && ctx.Err() != nil {
		record.Fate = Skipped
		return status.FromContextError(ctx.Err()).Err()
	}
	record.Began = Now()
	if err := sleepUntil(record.Began + service + w.stall()); err != nil {
		return err
	}
	record.Ended, record.Fate, record.Abandoned = Now(), Done, ctx.Err() != nil
	return nil
}

func (w *Worker) stall() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.begun++; w.StallEvery > 0 && w.begun%w.StallEvery == 0 {
		return w.Stall
	}
	return 0
}

// write tells about a call in one write, so that a reader sees whole lines.
func (w *Worker) write(r Record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	json.NewEncoder(w.Records).Encode(r) //nolint:errcheck,errchkjson // a missing record is found by who reads them
}

func callIndex(ctx context.Context) int {
	values := metadata.ValueFromIncomingContext(ctx, callKey)
	if len(values) != 1 {
		return -1
	}
	index, err := strconv.Atoi(values[0])
	if err != nil {
		return -1
	}
	return index
}

// ReadFolder reads all files of a folder in which Workers have their records.
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
		records, err := readRecords(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, records...)
	}
	return all, nil
}

// readRecords reads what a Worker has written so far. A last line that is not
// whole yet is left out.
func readRecords(text []byte) (records []Record, err error) {
	for {
		end := bytes.IndexByte(text, '\n')
		if end < 0 {
			return records, nil
		}
		var r Record
		if err := json.Unmarshal(text[:end], &r); err != nil {
			return nil, fmt.Errorf("record %d: %w", len(records)+1, err)
		}
		records, text = append(records, r), text[end+1:]
	}
}
