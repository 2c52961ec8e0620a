package worker

import (
	"context"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/health"
	"github.com/cabrank/cabrank/internal/testkit"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	grpchealth "google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
)

// countingHealth counts the checks it answers.
type countingHealth struct {
	*grpchealth.Server
	checks atomic.Int64
}

func (h *countingHealth) Check(ctx context.Context, request *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	h.checks.Add(1)
	return h.Server.Check(ctx, request)
}

// patient is what a prober and its listener need: a server of this process,
// which is the worker here, so its group is ours.
type patient struct {
	health   *countingHealth
	findings chan finding
	prober   *prober

	busy atomic.Bool // calls finish all the time
}

func (p *patient) activity() (work Work) {
	if p.busy.Load() {
		work.Answered = time.Now()
	}
	return work
}

// next waits for the next finding.
func (p *patient) next(t *testing.T) finding {
	t.Helper()
	select {
	case f := <-p.findings:
		return f
	case <-time.After(time.Minute):
		t.Fatal("nothing was found")
		return finding{}
	}
}

// awaitServing waits until the worker serves.
func (p *patient) awaitServing(t *testing.T) {
	t.Helper()
	for p.next(t).Said != health.Serving {
		continue
	}
}

// probe runs a prober against a server with health, on a unix socket, until the
// test ends. The server listens only when serve is called.
func probe(t *testing.T, interval time.Duration) (p *patient, serve func()) {
	t.Helper()
	path := filepath.Join(shortTemp(t), "s.sock")
	p = &patient{
		health:   &countingHealth{Server: grpchealth.NewServer()},
		findings: make(chan finding),
	}
	p.prober = &prober{
		group: unix.Getpgrp(), place: place{network: "unix", address: path},
		interval: interval, timeout: 2 * time.Second, activity: p.activity, findings: p.findings,
	}
	server := grpc.NewServer()
	grpc_health_v1.RegisterHealthServer(server, p.health)
	var tasks sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	tasks.Go(func() { p.prober.run(ctx) })
	t.Cleanup(func() {
		cancel()
		server.Stop()
		tasks.Wait()
	})
	return p, func() {
		listener, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		tasks.Go(func() { _ = server.Serve(listener) })
	}
}

// A booting worker is looked at until it serves; NOT_SERVING at boot is not yet.
func TestProberFollowsTheBoot(t *testing.T) {
	p, serve := probe(t, time.Hour)
	for range 3 {
		if v := p.next(t); v.Said != health.Nothing || v.Reason == "" {
			t.Fatalf("before it listens: %+v", v)
		}
	}
	p.health.SetServingStatus("", grpc_health_v1.HealthCheckResponse_NOT_SERVING)
	serve()
	v := p.next(t)
	for v.Said == health.Nothing {
		v = p.next(t)
	}
	if v.Said != health.NotServing {
		t.Fatalf("while it starts: %+v", v)
	}
	p.health.SetServingStatus("", grpc_health_v1.HealthCheckResponse_SERVING)
	for v.Said == health.NotServing {
		v = p.next(t)
	}
	if v.Said != health.Serving {
		t.Fatalf("when it serves: %+v", v)
	}
}

// A worker that listens and says nothing is not said to listen nowhere for as long as
// the question to it waits.
func TestProberFindsAMuteListener(t *testing.T) {
	p, _ := probe(t, time.Hour)
	if v := p.next(t); !strings.HasPrefix(v.Reason, "nothing listens on ") {
		t.Fatalf("before it listens: %+v", v)
	}
	listener, err := net.Listen("unix", p.prober.place.address)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	v, asked := p.next(t), time.Now()
	for strings.HasPrefix(v.Reason, "nothing listens on ") {
		v, asked = p.next(t), time.Now()
	}
	if want := "it takes connections, and has not answered the health question"; v.Said != health.Nothing || v.Reason != want {
		t.Errorf("%+v, want %q", v, want)
	}
	if v := p.next(t); time.Since(asked) < p.prober.timeout/2 {
		t.Errorf("the question itself took %v: %+v", time.Since(asked), v)
	}
}

// R6: while calls finish nobody asks; when they cease somebody does.
func TestProberAsksOnlyTheSilent(t *testing.T) {
	const interval = 100 * time.Millisecond
	p, serve := probe(t, interval)
	serve()
	p.busy.Store(true)
	p.awaitServing(t)
	asked := p.health.checks.Load()
	began := time.Now()
	testkit.Eventually(t, time.Minute, "five intervals full of calls", func() bool { return time.Since(began) > 5*interval })
	if now := p.health.checks.Load(); now != asked {
		t.Errorf("%d checks while calls finished, want none", now-asked)
	}
	p.busy.Store(false)
	for range 2 {
		if v := p.next(t); v.Said != health.Serving {
			t.Errorf("after the calls: %+v", v)
		}
	}
}

// A stopped process is not asked: its silence would say nothing.
func TestProberPauses(t *testing.T) {
	p, serve := probe(t, 20*time.Millisecond)
	p.prober.paused.Store(true)
	serve()
	p.awaitServing(t)
	asked := p.health.checks.Load()
	began := time.Now()
	testkit.Eventually(t, time.Minute, "many intervals", func() bool { return time.Since(began) > 200*time.Millisecond })
	if now := p.health.checks.Load(); now != asked {
		t.Errorf("%d checks while paused", now-asked)
	}
	p.prober.paused.Store(false)
	if v := p.next(t); v.Said != health.Serving {
		t.Errorf("after the pause: %+v", v)
	}
}
