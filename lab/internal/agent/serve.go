package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/cabrank/cabrank/lab/internal/caller"
	"github.com/cabrank/cabrank/lab/internal/method"
	"github.com/cabrank/cabrank/lab/internal/rawh2"
	"github.com/cabrank/cabrank/lab/internal/testbed"
	"github.com/cabrank/cabrank/lab/internal/traffic"
	_ "github.com/cabrank/cabrank/lab/internal/work" // a method that is known without asking
)

// gatewayLimit is how long a gateway may take to begin: interpreters on a busy machine.
const gatewayLimit = 30 * time.Second

// Serve does one job that comes from in and writes what it comes to, until in ends.
//
// Errors: what cannot be read or written; a job that fails is an answer.
func Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	s := &server{in: json.NewDecoder(in), out: json.NewEncoder(out)}
	var job Job
	if err := receive(s.in, &job); err != nil {
		return fmt.Errorf("the job cannot be read: %w", err)
	}
	if err := s.do(ctx, job); err != nil {
		return send(s.out, line{Answer: &Answer{Error: err.Error()}})
	}
	return nil
}

// send writes a value on a line, and receive reads the next one. Both ends are the same
// program: plans go as they are in Go.
func send(to *json.Encoder, v any) error { return to.Encode(v) }

func receive(from *json.Decoder, v any) error { return from.Decode(v) }

type server struct {
	in  *json.Decoder
	out *json.Encoder
}

// do makes the calls and answers. Connections stay until the input ends, so that what they
// cost the others can be read meanwhile.
func (s *server) do(ctx context.Context, job Job) error {
	client, err := job.any(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	if err := send(s.out, line{Ready: client.String()}); err != nil {
		return err
	}
	var b begin
	if err := receive(s.in, &b); err != nil {
		return errors.New("it was ended before it began")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // ends with the process: its input ends at the latest then
		_ = receive(s.in, &b) // only its end matters
		cancel()
	}()
	answer, err := run(ctx, traffic.New(job.Plan, client), b.At)
	if err != nil {
		return err
	}
	if err := send(s.out, line{Answer: &answer}); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// run makes the calls from a moment on.
func run(ctx context.Context, load *traffic.Load, at time.Time) (a Answer, err error) {
	_ = testbed.Wait(ctx, time.Until(at))
	began, used := time.Now(), testbed.OwnCPU()
	a.Record, err = load.Run(ctx)
	a.Took, a.Cores = time.Since(began), runtime.GOMAXPROCS(0)
	a.CPU = testbed.OwnCPU() - used
	// Not the maximum of rusage: it is that of who has started the process, if that is
	// larger.
	if use, err := testbed.ReadAlone(os.Getpid()); err == nil {
		a.PeakRSS = use.PeakRSS
	}
	return a, err
}

type client interface {
	traffic.Client
	fmt.Stringer
	Close()
}

// any makes a client that speaks what the job says.
func (j *Job) any(ctx context.Context) (client, error) {
	switch {
	case j.Raw:
		return rawh2.NewClient(j.Target, j.Data)
	case j.Path == "":
		return j.client(ctx)
	}
	c, err := caller.NewGateway(caller.GatewayOptions{Address: j.Target, Path: j.Path, Ready: j.Ready, Seed: j.Plan.Seed})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, gatewayLimit)
	defer cancel()
	if err := c.Ready(ctx); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func (j *Job) client(ctx context.Context) (client, error) { //nolint:ireturn // that of the way
	strategy, err := caller.ParseStrategy(j.Connections)
	if err != nil {
		return nil, err
	}
	metadata, err := caller.ParseMetadata(j.Metadata)
	if err != nil {
		return nil, err
	}
	_, c, err := caller.Open(ctx, caller.Options{
		Way: j.Way, Target: j.Target, Strategy: strategy, WorkerKey: j.WorkerKey, Metadata: metadata, DNSInterval: j.DNSInterval,
	}, caller.Calls{
		Method: j.Method, Files: method.Files{Names: j.Proto, Imports: j.Imports}, Known: protoregistry.GlobalFiles,
		Data: method.Data{Name: "data", Text: []byte(j.Data), Seed: j.Plan.Seed, Messages: j.Messages},
	})
	return c, err
}

// Job is what one generator does.
type Job struct {
	// Target is what is dialed, as caller.Options has it.
	Target string `json:"target"`
	// Path is what is asked for in HTTP requests, in place of gRPC calls, and Ready what
	// is answered when the target can work, as caller.GatewayOptions has both. What follows
	// of the method and the connections has no meaning then.
	Path  string `json:"path,omitempty"`
	Ready string `json:"ready,omitempty"`
	// Method is package.Service/Method; Proto and Imports describe it. Without any it is
	// one that this program knows, or the target is asked by reflection.
	Method  string   `json:"method"`
	Proto   []string `json:"proto,omitempty"`
	Imports []string `json:"imports,omitempty"`
	// Data are the requests, drawn by the seed of the plan; Messages is how many callers
	// send in a call of a stream.
	Data     string `json:"data"`
	Messages int    `json:"messages,omitempty"`
	// Metadata is sent with each call, as name:value.
	Metadata []string `json:"metadata,omitempty"`
	// WorkerKey is the header or trailer that names who has answered.
	WorkerKey string `json:"worker_key,omitempty"`
	// Raw has Data say what rawh2.ParseRequest reads; what else there is of the method and
	// the connections has no meaning then.
	Raw bool `json:"raw,omitempty"`
	// Connections is how calls share them, as caller.ParseStrategy reads it.
	Connections string        `json:"connections"`
	DNSInterval time.Duration `json:"dns_interval_ns,omitempty"`
	// Way is how calls are written.
	Way caller.Way `json:"way,omitzero"`
	// Plan is the whole plan; its Part is what this generator does.
	Plan traffic.Plan `json:"plan"`
}

// Answer is what a generator has come to.
type Answer struct {
	// Error says in a line why there is no record.
	Error string `json:"error,omitempty"`
	// Record is of its part.
	Record *traffic.Record `json:"record,omitempty"`
	// CPU is what it has used since the load began, of Took; PeakRSS the most that it
	// held, in bytes.
	CPU     time.Duration `json:"cpu_ns"`
	Took    time.Duration `json:"took_ns"`
	PeakRSS int64         `json:"peak_rss_bytes"`
	// Cores is how many it may use at a time.
	Cores int `json:"cores"`
}

// Busy is the share of its cores that it has used, 0 to 1: of several generators on one
// machine the sum counts.
func (a *Answer) Busy() float64 {
	if a.Took <= 0 || a.Cores < 1 {
		return 0
	}
	return a.CPU.Seconds() / a.Took.Seconds() / float64(a.Cores)
}

// begin is the second line of the input.
type begin struct {
	At time.Time `json:"at"`
}

// line is a line of the output: one of its fields is there.
type line struct {
	Ready  string  `json:"ready,omitempty"` // how it calls
	Answer *Answer `json:"answer,omitempty"`
}
