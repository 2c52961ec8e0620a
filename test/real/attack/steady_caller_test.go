//go:build real || soak

package attack_test

import (
	"context"
	"encoding/json"
	"flag"
	"os"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/cabrank/cabrank/internal/demo/demopb"
)

// steadyRole as the first argument makes the test binary a caller in a fixed rhythm,
// which prints how long its calls took.
const steadyRole = "steady-caller"

// steadyTimes is how long the calls of a steady caller took, each from when it was
// due: those that cabrank answers itself, and those that a worker does.
type steadyTimes struct {
	Door   []time.Duration `json:"door"`
	Worker []time.Duration `json:"worker"`
	Failed int             `json:"failed"`
}

func (s *steadyTimes) add(more steadyTimes) {
	s.Door, s.Worker = append(s.Door, more.Door...), append(s.Worker, more.Worker...)
	s.Failed += more.Failed
}

// runSteady is the main function of the steady caller.
func runSteady(args []string) error {
	flags := flag.NewFlagSet(steadyRole, flag.ContinueOnError)
	addr := flags.String("addr", "", "who is called, HOST:PORT")
	span := flags.Duration("for", time.Second, "for how long")
	every := flags.Duration("every", 10*time.Millisecond, "between two calls of a kind")
	ca := flags.String("ca", "", "over TLS, trusting the certificates of this file")
	if err := flags.Parse(args); err != nil {
		return err
	}
	secret := insecure.NewCredentials()
	if *ca != "" {
		var err error
		if secret, err = credentials.NewClientTLSFromFile(*ca, ""); err != nil {
			return err
		}
	}
	conn, err := grpc.NewClient(*addr, grpc.WithTransportCredentials(secret))
	if err != nil {
		return err
	}
	defer conn.Close()
	greet := func(ctx context.Context) error {
		_, err := demopb.NewGreeterClient(conn).SayHello(ctx, &demopb.HelloRequest{Name: "steady"})
		return err
	}
	check := func(ctx context.Context) error {
		_, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{})
		return err
	}
	for range 20 { // what the first calls cost is not of interest
		_ = greet(context.Background())
		_ = check(context.Background())
	}
	var times steadyTimes
	var mu sync.Mutex // guards times
	var calls sync.WaitGroup
	began := time.Now()
	call := func(at time.Duration, into *[]time.Duration, do func(context.Context) error) {
		<-time.After(time.Until(began.Add(at)))
		calls.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			err := do(ctx)
			took := time.Since(began) - at
			mu.Lock()
			defer mu.Unlock()
			*into = append(*into, took)
			if err != nil {
				times.Failed++
			}
		})
	}
	for at := time.Duration(0); at < *span; at += *every {
		call(at, &times.Door, check)
		call(at+*every/2, &times.Worker, greet)
	}
	calls.Wait()
	return json.NewEncoder(os.Stdout).Encode(times)
}
