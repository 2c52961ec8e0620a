// Package lab joins the parts of the lab into what its commands do. It measures from
// outside: what it calls, it calls as any user does.
package lab

import (
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/cabrank/cabrank/lab/internal/caller"
	"github.com/cabrank/cabrank/lab/internal/connectcaller"
	"github.com/cabrank/cabrank/lab/internal/method"
	"github.com/cabrank/cabrank/lab/internal/report"
	"github.com/cabrank/cabrank/lab/internal/testbed"
	"github.com/cabrank/cabrank/lab/internal/traffic"
)

// answerLimit is how long the service may take to be reached, and to describe itself.
const answerLimit = 10 * time.Second

// Load is a load on one method of a service that somebody else runs.
type Load struct {
	// Address is host:port, unix:///path, or what else grpc-go takes.
	Address string
	// Method is package.Service/Method.
	Method string
	// Data are the requests: see method.Data.
	Data method.Data
	// Also are further methods of the service, each with its share of the calls and
	// connections of its own.
	Also []Also
	// Proto are the files that describe the method; without any the service is asked
	// by reflection.
	Proto method.Files
	// Plan is when to call.
	Plan traffic.Plan
	// Strategy is how calls share connections.
	Strategy caller.Strategy
	// WorkerKey is the header or trailer that names who has answered; empty for none.
	WorkerKey string
	// Metadata is sent with each call.
	Metadata metadata.MD
	// Credentials are those of TLS; nil means plaintext.
	Credentials credentials.TransportCredentials
	// Way is how calls are written, and TLS how those are secured that are not plain gRPC;
	// nil means plaintext.
	Way connectcaller.Way
	TLS *tls.Config
	// PIDs are the processes that answer, if they are on this machine: what they use
	// is counted.
	PIDs []int
}

// Prepared is a load that can run: what is called is known, and the service answers. Close
// it when it is of no more use.
type Prepared struct {
	client        traffic.Client
	what, address string // what is called, and where
	how           string // how it is called, in a line
	pids          []int  // who answers
	close         func()
}

// String says what is called, and where.
func (p *Prepared) String() string { return p.what + " at " + p.address }

// Close ends the connections.
func (p *Prepared) Close() { p.close() }

// Prepare finds the method, makes the requests and connects.
//
// Errors: one line that says what and where, and what to do instead.
func (l Load) Prepare(ctx context.Context) (*Prepared, error) {
	p := &preparing{load: l}
	if err := p.prepare(ctx); err != nil {
		p.close()
		return nil, err
	}
	return &Prepared{
		client: p.client, what: strings.TrimPrefix(p.method.Path, "/") + l.others(), address: l.Address,
		how: p.client.String() + "; " + p.method.Kind.String() + ".", pids: l.PIDs, close: p.close,
	}, nil
}

// others names the further methods.
func (l Load) others() (text string) {
	for _, a := range l.Also {
		text += fmt.Sprintf(", %.3g %% %s", 100*a.Share, a.Method)
	}
	return text
}

// preparing is a load whose method is known, whose requests are made, and which connects.
type preparing struct {
	load   Load
	conn   *grpc.ClientConn // to ask by reflection; nil with files
	client connectcaller.Caller
	method *method.Method
}

func (p *preparing) prepare(ctx context.Context) error {
	if err := caller.CheckTarget(p.load.Address); err != nil {
		return err
	}
	if err := checkService(p.load.PIDs); err != nil {
		return err
	}
	var err error
	if p.method, p.client, err = p.connect(ctx, p.load.Method, p.load.Data); err != nil {
		return err
	}
	if len(p.load.Also) > 0 {
		if err := p.mix(ctx); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	return p.client.Ready(ctx)
}

// mix has the further methods called beside the first one.
func (p *preparing) mix(ctx context.Context) error {
	m := &mixed{seed: p.load.Plan.Seed}
	first := 1.0
	for _, a := range p.load.Also {
		first -= a.Share
	}
	m.add(p.method.Path, first, p.client)
	p.client = m
	for _, a := range p.load.Also {
		method, client, err := p.connect(ctx, a.Method, a.Data)
		if err != nil {
			return err
		}
		m.add(method.Path, a.Share, client)
	}
	return nil
}

// connect makes what calls one method.
func (p *preparing) connect(ctx context.Context, name string, data method.Data) (*method.Method, connectcaller.Caller, error) { //nolint:ireturn // that of the way
	m, err := p.find(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	l := p.load
	data.Seed, data.JSON = l.Plan.Seed, l.Way.JSON()
	requests, err := m.Requests(ctx, data)
	if err != nil {
		return nil, nil, err
	}
	client, err := connectcaller.For(connectcaller.Options{Way: l.Way, TLS: l.TLS, Options: caller.Options{
		Target: l.Address, Method: m.Path,
		ClientStreams: m.Kind.CallerStreams(), ServerStreams: m.Kind.ServerStreams(),
		Messages: requests.Messages, Strategy: l.Strategy, WorkerKey: l.WorkerKey, Metadata: l.Metadata,
		Credentials: l.Credentials,
	}})
	if err != nil {
		return nil, nil, err
	}
	return m, client, nil
}

// find has a method described.
func (p *preparing) find(ctx context.Context, name string) (*method.Method, error) {
	if len(p.load.Proto.Names) > 0 {
		return method.FromFiles(ctx, p.load.Proto, name)
	}
	if p.conn == nil {
		security := p.load.Credentials
		if security == nil {
			security = insecure.NewCredentials()
		}
		var err error
		if p.conn, err = grpc.NewClient(p.load.Address, grpc.WithTransportCredentials(security), grpc.WithNoProxy()); err != nil {
			return nil, fmt.Errorf("%.80q is no address: %w", p.load.Address, err)
		}
	}
	return method.FromServer(ctx, p.conn, name, answerLimit)
}

// close ends the connections.
func (p *preparing) close() {
	if p.client != nil {
		p.client.Close()
	}
	if p.conn != nil {
		_ = p.conn.Close()
	}
}

// Run makes the calls of a plan and reports what came of them. watch is called about
// once a second; it may be nil. When ctx is cancelled, the report is of what was
// measured until then.
//
// Errors: of the machine. What the service does is a figure.
func (p *Prepared) Run(ctx context.Context, plan traffic.Plan, watch func(traffic.Live)) (report.Load, error) {
	load := traffic.New(plan, p.client)
	service := watchService(p.pids, plan.Warmup)
	began, used := time.Now(), usedCPU()
	done := make(chan struct{})
	watched := make(chan struct{})
	go func() { // ends with the load
		defer close(watched)
		if watch != nil {
			follow(load, watch, done)
		}
	}()
	record, err := load.Run(ctx)
	processes := service.end()
	close(done)
	<-watched
	if err != nil {
		return report.Load{}, err
	}
	busy := float64(usedCPU()-used) / float64(time.Since(began)) / float64(runtime.GOMAXPROCS(0))
	return report.Load{
		Method: p.what, Address: p.address, Began: began, Record: record,
		Busy: busy, Limited: record.GeneratorLimits(busy), Processes: processes,
		Client:  []string{p.how},
		Machine: []string{machine(busy)},
	}, nil
}

// follow shows how a load goes once a second until it is done.
func follow(load *traffic.Load, watch func(traffic.Live), done <-chan struct{}) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			watch(load.Live())
		case <-done:
			return
		}
	}
}

// machine describes where the generator ran.
func machine(busy float64) string {
	return fmt.Sprintf("The generator ran on %s and used %.0f %% of those that it may use.", cores(), 100*busy)
}

// Machine describes in a line where the lab runs.
func Machine() string { return "The lab ran on " + cores() + "." }

func cores() string {
	m := testbed.ThisMachine()
	text := fmt.Sprintf("%d cores (%s, %s, %s)", m.Cores, m.CPU, m.Kernel, m.Go)
	if m.CPU == "" {
		text = fmt.Sprintf("%d cores (%s/%s, %s)", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, m.Go)
	}
	if host, err := os.Hostname(); err == nil {
		text += " of " + host
	}
	return text
}
