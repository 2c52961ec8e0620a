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
	if err := s.in.Decode(&job); err != nil {
		return fmt.Errorf("the job cannot be read: %w", err)
	}
	if err := s.do(ctx, job); err != nil {
		return s.out.Encode(line{Answer: &Answer{Error: err.Error()}})
	}
	return nil
}

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
