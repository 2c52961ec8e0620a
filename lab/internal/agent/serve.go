// Package agent is a generator in a process of its own: `cabrank lab agent`. A run of a
// scenario starts one or several for each block, each with a part of the plan.
//
// Serve is the process; Start, in the process that runs the scenario, starts one and
// talks to it. A generator is a process since grpc-go's interval between two questions to
// a name server is one for a whole process, since descriptors are counted by process, and
// since what it uses is to stand beside what the service uses.
//
// They talk in JSON, a value on each line, over standard input and output:
//
//	→ Job              what to call, and how
//	← {"ready": ...}   the method is known, the connections stand; or {"answer": {"error": ...}}
//	→ {"at": TIME}     begin then
//	← {"answer": ...}  the record
//
// The end of the input, at any time, means that no more calls start. So no generator
// outlives the process that has started it for longer than its calls take.
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
	if err := s.in.Decode(&job); err != nil { //nolint:musttag // plans and options go as they are in Go
		return fmt.Errorf("the job cannot be read: %w", err)
	}
	if err := s.do(ctx, job); err != nil {
		return s.out.Encode(line{Answer: &Answer{Error: err.Error()}})
	}
	return nil
}

// server is one end; the other one is the same program: plans go as they are in Go.
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
	if err := s.out.Encode(line{Ready: client.String()}); err != nil {
		return err
	}
	var b begin
	if err := s.in.Decode(&b); err != nil {
		return errors.New("it was ended before it began")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // ends with the process: its input ends at the latest then
		_ = s.in.Decode(&b) // only its end matters
		cancel()
	}()
	answer, err := run(ctx, traffic.New(job.Plan, client), b.At)
	if err != nil {
		return err
	}
	if err := s.out.Encode(line{Answer: &answer}); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

func run(ctx context.Context, load *traffic.Load, at time.Time) (a Answer, err error) {
	_ = testbed.Wait(ctx, time.Until(at))
	began, used := time.Now(), testbed.OwnCPU()
	a.Record, err = load.Run(ctx)
	a.Took, a.Cores = time.Since(began), runtime.GOMAXPROCS(0)
	a.CPU = testbed.OwnCPU() - used
	// Not the maximum of rusage: it is that of who has started the process, if that is larger.
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
		return rawh2.NewClient(j.Target, string(j.Calls.Data.Text))
	case j.Gateway.Path == "":
		j.Calls.Known = protoregistry.GlobalFiles
		_, c, err := caller.Open(ctx, j.Options, j.Calls)
		return c, err
	}
	j.Gateway.Address = j.Target
	c, err := caller.NewGateway(j.Gateway)
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

// Job is what one generator does.
type Job struct {
	// Options are whom to call, and how, and Calls what. A method that nothing describes is
	// one that this program knows, or the target is asked by reflection.
	caller.Options

	Calls caller.Calls
	// Gateway is what is asked for in HTTP requests, in place of gRPC calls, if it has a path.
	Gateway caller.GatewayOptions
	// Raw has the requests say what rawh2.ParseRequest reads; what else there is of the method
	// and the connections has no meaning then.
	Raw  bool
	Plan traffic.Plan // the whole; its Part is what this generator does
}

// Answer is what a generator has come to.
type Answer struct {
	Error  string          `json:"error,omitempty"`  // why there is no record, in a line
	Record *traffic.Record `json:"record,omitempty"` // of its part
	// CPU is what it has used since the load began, of Took; PeakRSS the most that it
	// held, in bytes, and Cores how many it may use at a time.
	CPU     time.Duration `json:"cpu_ns"`
	Took    time.Duration `json:"took_ns"`
	PeakRSS int64         `json:"peak_rss_bytes"`
	Cores   int           `json:"cores"`
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
