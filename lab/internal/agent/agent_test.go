package agent

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/metadata"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/lab/internal/caller"
	"github.com/cabrank/cabrank/lab/internal/method"
	"github.com/cabrank/cabrank/lab/internal/traffic"
	"github.com/cabrank/cabrank/lab/internal/work"
)

func TestMain(m *testing.M) { testkit.VerifyMain(m) }

// worker serves until the test ends.
func worker(t *testing.T) (target string) {
	t.Helper()
	w, err := work.New(work.Options{Addr: "127.0.0.1:0", Name: "w", Full: work.Unlimited})
	testkit.Must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	addrs, ended := make(chan net.Addr, 1), make(chan error, 1)
	go func() { ended <- w.Serve(ctx, func(a net.Addr) { addrs <- a }) }()
	t.Cleanup(func() {
		cancel()
		err := <-ended
		testkit.Want(t, err == nil, "%v", err)
	})
	return (<-addrs).String()
}

func job(t *testing.T, target string, o traffic.Options) Job {
	t.Helper()
	plan, err := o.Plan()
	testkit.Must(t, err)
	return Job{
		Options: caller.Options{Target: target, WorkerKey: work.NameKey, Metadata: metadata.Pairs("a", "b")},
		Calls:   caller.Calls{Method: "cabrank.lab.v1.Worker/Work", Data: method.Data{Name: "data", Text: []byte(`{"sleep_ms": {{mix 1:50 5:50}}}`)}}, Plan: plan,
	}
}

// generator is one that serves in this process.
type generator struct {
	in    io.WriteCloser
	out   *json.Decoder
	ended chan error
}

func serve(t *testing.T, j Job) *generator {
	t.Helper()
	fromUs, in := io.Pipe()
	out, toUs := io.Pipe()
	g := &generator{in: in, out: json.NewDecoder(out), ended: make(chan error, 1)}
	go func() {
		err := Serve(context.Background(), fromUs, toUs)
		toUs.Close()
		g.ended <- err
	}()
	t.Cleanup(func() { in.Close() })
	if err := json.NewEncoder(in).Encode(j); err != nil { //nolint:musttag // as it is in Go
		t.Fatal(err)
	}
	return g
}

// next returns the next line.
func (g *generator) next(t *testing.T) (l line) {
	t.Helper()
	testkit.Must(t, g.out.Decode(&l))
	return l
}

func TestServe(t *testing.T) {
	g := serve(t, job(t, worker(t), traffic.Options{Rate: "200", Duration: 1200 * time.Millisecond, Warmup: 100 * time.Millisecond}))
	l := g.next(t)
	testkit.Need(t, strings.Contains(l.Ready, "connections single"), "%+v", l)
	testkit.Must(t, json.NewEncoder(g.in).Encode(begin{time.Now()}))
	a := g.next(t).Answer
	testkit.Need(t, a != nil && a.Error == "" && a.Record.Calls.Answered.Count() == 240 && a.Record.Workers["w"] == 240, "%+v", a)
	if a.CPU <= 0 || runtime.GOOS == "linux" && a.PeakRSS < 1<<20 || a.Busy() <= 0 || a.Busy() > 1 || a.Took < time.Second {
		t.Errorf("used %v of %v, held %d bytes, busy %v", a.CPU, a.Took, a.PeakRSS, a.Busy())
	}
	g.in.Close()
	testkit.Must(t, <-g.ended)
}

// Who does not speak the protocol of the job is told, and not called.
func TestServeTellsOfAnotherProtocol(t *testing.T) {
	j := job(t, worker(t), traffic.Options{Rate: "200", Duration: time.Second})
	j.Way.Protocol = caller.Connect
	g := serve(t, j)
	a := g.next(t).Answer
	testkit.Want(t, a != nil && strings.Contains(a.Error, "does not speak Connect"), "%+v", a)
	g.in.Close()
	<-g.ended
}

// A gateway is asked in HTTP, a given number of times.
func TestServeHTTP(t *testing.T) {
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Calls-By-Server", "a=2, b=1")
		if r.URL.Path == "/healthz" {
			w.WriteHeader(http.StatusNoContent)
		}
	}))
	defer gateway.Close()
	plan, err := traffic.Options{Callers: 3, Calls: 20, Duration: time.Minute}.Plan()
	testkit.Must(t, err)
	g := serve(t, Job{
		Options: caller.Options{Target: gateway.Listener.Addr().String()},
		Gateway: caller.GatewayOptions{Path: "/x?n={{.RequestNumber}}", Ready: "/healthz"}, Plan: plan,
	})
	l := g.next(t)
	testkit.Need(t, strings.Contains(l.Ready, "HTTP requests"), "%+v", l)
	testkit.Must(t, json.NewEncoder(g.in).Encode(begin{time.Now()}))
	a := g.next(t).Answer
	testkit.Want(t, a != nil && a.Error == "" && a.Record.Whole() && !a.Record.Cut && a.Record.Workers["a"] == 40, "%+v", a)
	g.in.Close()
	<-g.ended
}

// The end of the input ends the load; what was measured is told.
func TestServeStops(t *testing.T) {
	g := serve(t, job(t, worker(t), traffic.Options{Rate: "100", Duration: time.Hour}))
	g.next(t)
	testkit.Must(t, json.NewEncoder(g.in).Encode(begin{time.Now().Add(-time.Second)}))
	g.in.Close()
	a := g.next(t).Answer
	testkit.Want(t, a != nil && a.Record != nil && a.Record.Cut, "%+v", a)
	testkit.Must(t, <-g.ended)
}

func TestServeRefuses(t *testing.T) {
	good := job(t, worker(t), traffic.Options{Rate: "10", Duration: time.Second})
	for _, c := range []struct {
		change func(*Job)
		want   string
	}{
		{func(j *Job) { j.Calls.Method = "cabrank.lab.v1.Worker/Play" }, "has no method Play"},
		{func(j *Job) { j.Calls.Method = "no.Such/Thing" }, "no.Such"},
		{func(j *Job) { j.Calls.Data.Text = []byte("{") }, "data:1:"},
		{func(j *Job) { j.Calls.Files.Names = []string{"none.proto"} }, "none.proto: no such file"},
	} {
		j := good
		c.change(&j)
		g := serve(t, j)
		a := g.next(t).Answer
		testkit.Want(t, a != nil && strings.Contains(a.Error, c.want), "%+v, want %s", a, c.want)
		g.in.Close()
		<-g.ended
	}
	testkit.Want(t, Serve(t.Context(), strings.NewReader("x"), io.Discard) != nil, "what is no job was taken")
}
