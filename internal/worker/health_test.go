package worker

import (
	"context"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/health"
	"github.com/cabrank/cabrank/internal/health/check"
	"github.com/cabrank/cabrank/internal/process"
	"github.com/cabrank/cabrank/internal/testkit"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	grpchealth "google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
)

// patient is what a prober and its listener need: a server of this process,
// which is the worker here, so its group is ours.
type patient struct {
	health   *grpchealth.Server
	findings chan finding
	prober   *prober
}

// next waits for the next finding.
func (p *patient) next(t *testing.T) finding {
	t.Helper()
	return testkit.Take(t, p.findings, time.Minute, "nothing was found")
}

// probe runs a prober against a server with health, on a unix socket, until the
// test ends. The server listens only when serve is called.
func probe(t *testing.T) (p *patient, serve func()) {
	t.Helper()
	path := filepath.Join(shortTemp(t), "s.sock")
	asker, err := check.Open(check.Options{Network: "unix", Address: path, Interval: time.Hour, Timeout: 2 * time.Second, Redial: bootPollMax})
	testkit.Must(t, err)
	p = &patient{health: grpchealth.NewServer(), findings: make(chan finding)}
	p.prober = &prober{
		group: process.Group(unix.Getpgrp()), endpoint: endpoint{network: "unix", address: path}, timeout: 2 * time.Second,
		asker: asker, orders: make(chan order, 1), findings: p.findings,
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
		testkit.Must(t, err)
		tasks.Go(func() { _ = server.Serve(listener) })
	}
}

// A booting worker is looked at until it serves; NOT_SERVING at boot is not yet.
func TestProberFollowsTheBoot(t *testing.T) {
	p, serve := probe(t)
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
	testkit.Need(t, v.Said == health.NotServing, "while it starts: %+v", v)
	p.health.SetServingStatus("", grpc_health_v1.HealthCheckResponse_SERVING)
	for v.Said == health.NotServing {
		v = p.next(t)
	}
	testkit.Need(t, v.Said == health.Serving, "when it serves: %+v", v)
}

// A worker that listens and says nothing is not said to listen nowhere for as long as
// the question to it waits.
func TestProberFindsAMuteListener(t *testing.T) {
	p, _ := probe(t)
	if v := p.next(t); !strings.HasPrefix(v.Reason, "nothing listens on ") {
		t.Fatalf("before it listens: %+v", v)
	}
	listener, err := net.Listen("unix", p.prober.endpoint.address)
	testkit.Must(t, err)
	defer listener.Close()
	v, asked := p.next(t), time.Now()
	for strings.HasPrefix(v.Reason, "nothing listens on ") {
		v, asked = p.next(t), time.Now()
	}
	want := "it takes connections, and has not answered the health question"
	testkit.Want(t, v.Said == health.Nothing && v.Reason == want, "%+v, want %q", v, want)
	if v := p.next(t); time.Since(asked) < p.prober.timeout/2 {
		t.Errorf("the question itself took %v: %+v", time.Since(asked), v)
	}
}

// R6: a worker is asked when it is due, and a stopped process never: its silence would say
// nothing. One question is under way at a time.
func TestProberDoesAsItIsTold(t *testing.T) {
	p, serve := probe(t)
	serve()
	f := p.next(t)
	for f.Said != health.Serving {
		f = p.next(t)
	}
	w, l := new(worker), &child{prober: p.prober, stopped: true}
	now := time.Now()
	w.ask(l, now)
	testkit.Need(t, !l.asking, "a stopped process is asked")
	l.stopped = false
	for range 2 {
		w.ask(l, now)
	}
	if l.hear(p.next(t), now); l.asking || l.last.Said != health.Serving || !l.asked.Equal(now) {
		t.Errorf("after an answer: %+v", l)
	}
	if w.ask(l, now); l.asking {
		t.Error("asked again at once")
	}
	p.prober.orders <- bootAgain
	if f := p.next(t); f.Said != health.Serving || len(f.owners) == 0 {
		t.Errorf("looked at as at the boot: %+v", f)
	}
}
