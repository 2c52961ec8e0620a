//go:build soak

package operations_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/cabrank/cabrank/examples/go/workpb"
	"github.com/cabrank/cabrank/internal/doctor"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

const (
	// doctors look at each case, one each half second.
	doctors     = 20
	doctorEvery = 500 * time.Millisecond
)

// illness is a service with a fault, or none.
type illness struct {
	name   string
	flags  []string
	worker []string
	limit  string // of open files
	plant  func(t *testing.T, c *harness.Cabrank, conn *grpc.ClientConn)
}

// shell is a worker that is another one at the second place.
func shell(t *testing.T, second string) []string {
	t.Helper()
	worker := strings.Join(harness.FaultWorker(t), " ")
	return []string{"sh", "-c", "if [ $CABRANK_WORKER = worker-2 ]; then " + strings.ReplaceAll(second, "WORKER", worker) + "; fi; exec " + worker}
}

// call is a good caller's.
func call(conn *grpc.ClientConn, work, deadline time.Duration) harness.LoopCall {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, deadline)
		defer cancel()
		_, err := workpb.NewWorkClient(conn).Io(ctx, &workpb.IoRequest{Millis: uint32(work.Milliseconds())})
		return err
	}
}

// closed is callers that make one call after the other.
func closed(callers int, work time.Duration) func(*testing.T, *harness.Cabrank, *grpc.ClientConn) {
	return func(t *testing.T, _ *harness.Cabrank, conn *grpc.ClientConn) {
		t.Helper()
		harness.StartLoop(t, callers, call(conn, work, 10*time.Second))
	}
}

// repeat does something again and again until the end of the test, after pauses.
func repeat(t *testing.T, pause func() time.Duration, do func()) {
	t.Helper()
	var going sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(func() { cancel(); going.Wait() })
	going.Go(func() {
		for ctx.Err() == nil {
			select {
			case <-time.After(pause()):
				going.Go(do)
			case <-ctx.Done():
			}
		}
	})
}

func each(pause time.Duration) func() time.Duration { return func() time.Duration { return pause } }

func illnesses(t *testing.T) []illness {
	t.Helper()
	fault := harness.FaultWorker(t)
	tls, _, trust := harness.WithTLS(t, "")
	node := harness.ReadLangExample(t, "node").Worker
	return []illness{
		{name: "crash_loop", worker: shell(t, "echo no such table: orders; exit 3"), plant: closed(4, 20*time.Millisecond)},
		{name: "no_worker", worker: []string{"sleep", "600"}},
		{name: "sick_worker", worker: fault, plant: func(t *testing.T, c *harness.Cabrank, conn *grpc.ClientConn) {
			t.Helper()
			closed(4, 20*time.Millisecond)(t, c, conn)
			c.WaitWorkers(2)
			testkit.Must(t, syscall.Kill(c.ReadyPIDs("worker-2")[0], syscall.SIGSTOP))
		}},
		{name: "certificate", worker: fault, flags: []string{"--config", tls}, plant: func(t *testing.T, c *harness.Cabrank, _ *grpc.ClientConn) {
			t.Helper()
			closed(4, 20*time.Millisecond)(t, c, harness.DialTLS(t, c.Addr, trust))
		}},
		{name: "files", worker: fault, limit: "120", plant: func(t *testing.T, c *harness.Cabrank, conn *grpc.ClientConn) {
			t.Helper()
			closed(2, 20*time.Millisecond)(t, c, conn)
			for range 40 {
				harness.Dial(t, c.Addr).Connect()
			}
		}},
		{name: "too_many_slots", flags: []string{"--workers", "1", "--slots", "8"}, worker: node, plant: func(t *testing.T, _ *harness.Cabrank, conn *grpc.ClientConn) {
			t.Helper()
			harness.StartLoop(t, 6, func(ctx context.Context) error {
				ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
				defer cancel()
				_, err := workpb.NewWorkClient(conn).Cpu(ctx, &workpb.CpuRequest{N: 27})
				return err
			})
		}},
		{name: "slow_worker", flags: []string{"--workers", "3"}, worker: shell(t, "exec WORKER -slow 6"), plant: closed(6, 20*time.Millisecond)},
		{name: "too_few_workers", flags: []string{"--workers", "1", "--slots", "2"}, worker: fault, plant: closed(8, 20*time.Millisecond)},
		{name: "short_deadlines", flags: []string{"--config", configOf(t, "on_cancel: free\n"), "--slots", "1"}, worker: fault, plant: func(t *testing.T, _ *harness.Cabrank, conn *grpc.ClientConn) {
			t.Helper()
			repeat(t, each(time.Second), func() {
				var burst sync.WaitGroup
				for range 12 {
					burst.Go(func() { _ = call(conn, 50*time.Millisecond, 180*time.Millisecond)(t.Context()) })
				}
				burst.Wait()
			})
		}},
		{name: "pages_lost", worker: harness.FaultWorker(t, "-metrics"), flags: []string{"--config", configOf(t, "metrics: {interval: 1s}\n")}, plant: closed(4, 20*time.Millisecond)},
		{name: "connection_per_call", worker: fault, plant: func(t *testing.T, c *harness.Cabrank, _ *grpc.ClientConn) {
			t.Helper()
			harness.StartLoop(t, 2, func(ctx context.Context) error {
				conn, err := grpc.NewClient(c.Addr, grpc.WithNoProxy(), grpc.WithTransportCredentials(insecure.NewCredentials()))
				if err != nil {
					return err
				}
				defer conn.Close()
				return call(conn, 20*time.Millisecond, 10*time.Second)(ctx)
			})
		}},
		{name: "no_deadlines", worker: fault, plant: func(t *testing.T, _ *harness.Cabrank, conn *grpc.ClientConn) {
			t.Helper()
			harness.StartLoop(t, 4, func(ctx context.Context) error {
				_, err := workpb.NewWorkClient(conn).Io(ctx, &workpb.IoRequest{Millis: 20})
				return err
			})
		}},
		{name: "no_health_service", worker: harness.FaultWorker(t, "-mute"), plant: closed(4, 20*time.Millisecond)},

		{name: "calm_idle", worker: fault},
		{name: "calm_nine_tenths", worker: fault, plant: func(t *testing.T, _ *harness.Cabrank, conn *grpc.ClientConn) {
			t.Helper()
			// Calls come by chance: 450 a second of 20 ms for 10 slots.
			repeat(t, func() time.Duration { return time.Duration(rand.ExpFloat64() * float64(time.Second) / 450) }, func() {
				_ = call(conn, 20*time.Millisecond, 10*time.Second)(t.Context())
			})
		}},
		{name: "calm_streams", worker: fault, plant: func(t *testing.T, _ *harness.Cabrank, conn *grpc.ClientConn) {
			t.Helper()
			harness.StartLoop(t, 6, func(ctx context.Context) error {
				stream, err := workpb.NewWorkClient(conn).Count(ctx, &workpb.CountRequest{To: 30, PauseMillis: 100})
				for err == nil {
					_, err = stream.Recv()
				}
				return nil
			})
		}},
		{name: "calm_roll", worker: fault, plant: func(t *testing.T, c *harness.Cabrank, conn *grpc.ClientConn) {
			t.Helper()
			closed(4, 20*time.Millisecond)(t, c, conn)
			repeat(t, each(3*time.Second), func() { c.Signal(syscall.SIGHUP) })
		}},
		{name: "calm_burst", worker: fault, plant: func(t *testing.T, c *harness.Cabrank, conn *grpc.ClientConn) {
			t.Helper()
			closed(2, 20*time.Millisecond)(t, c, conn)
			repeat(t, each(3*time.Second), func() {
				for range 40 {
					go func() { _ = call(conn, 20*time.Millisecond, 10*time.Second)(t.Context()) }()
				}
			})
		}},
	}
}

// configOf is the path of a configuration.
func configOf(t *testing.T, text string) string {
	t.Helper()
	path := harness.WriteFile(t, "cabrank.yml", text)
	return path
}

// Each of 20 doctors names the fault first, and nothing of what is calm.
func TestDoctor(t *testing.T) {
	for _, i := range illnesses(t) {
		t.Run(i.name, func(t *testing.T) {
			control := filepath.Join(harness.ShortTempDir(t), "control")
			c := i.start(t, control)
			if i.name != "no_worker" {
				c.WaitReady(harness.LangBound)
			}
			if i.plant != nil {
				i.plant(t, c, harness.Dial(t, c.Addr))
			}
			if told := map[string]string{"crash_loop": "crash loop", "sick_worker": "takes no calls"}[i.name]; told != "" {
				c.WaitLog(harness.LangBound, told)
			}
			examine(t, i.name, control)
		})
	}
}

func (i *illness) start(t *testing.T, control string) *harness.Cabrank {
	t.Helper()
	flags := append([]string{"--control", control}, i.flags...)
	if i.limit != "" {
		t.Setenv("CABRANK_BIN", limited(t, i.limit))
	}
	env := harness.LangEnv(t)
	if len(i.flags) == 0 || i.flags[0] == "--config" {
		flags = append(flags, "--workers", "2", "--transport", "unix")
	}
	return harness.StartCabrankEnv(t, env, append(append(flags, "--"), i.worker...)...)
}

// limited is a program that is cabrank with few open files.
func limited(t *testing.T, files string) string {
	t.Helper()
	text := fmt.Sprintf("#!/bin/sh\nulimit -n %s\nexec %s \"$@\"\n", files, harness.CabrankBinary(t))
	path := harness.WriteFile(t, "cabrank", text)
	return path
}

// examine has all doctors look and holds what they say.
func examine(t *testing.T, name, control string) {
	t.Helper()
	var all sync.WaitGroup
	bin := filepath.Join(harness.Root(t), "bin", "cabrank")
	tick := time.NewTicker(doctorEvery) // so that their windows differ
	defer tick.Stop()
	for n := range doctors {
		args := []string{"doctor", "--json", "--control", control}
		if *update && n == 0 {
			args = append(args, "--save", filepath.Join(harness.Root(t), "cmd", "cabrank", "testdata", "doctor", name+".json"))
		}
		all.Go(func() {
			out, err := exec.CommandContext(t.Context(), bin, args...).CombinedOutput()
			var said struct {
				Findings []doctor.Finding `json:"findings"`
			}
			if json.Unmarshal(out, &said) != nil {
				t.Errorf("doctor %d: %v\n%s", n, err, out)
				return
			}
			calm := strings.HasPrefix(name, "calm")
			if n == 0 {
				t.Logf("%+v", said.Findings)
			}
			if calm != (len(said.Findings) == 0) || !calm && said.Findings[0].Name != name || calm == (err != nil) {
				t.Errorf("doctor %d, %v: %+v", n, err, said.Findings)
			}
		})
		<-tick.C
	}
	all.Wait()
	if *update {
		thin(t, filepath.Join(harness.Root(t), "cmd", "cabrank", "testdata", "doctor", name+".json"))
	}
}

// thin keeps of a file each fourth look and the last one, without paths of this machine.
func thin(t *testing.T, file string) {
	t.Helper()
	text := testkit.ReadFile(t, file)
	lines := strings.SplitAfter(strings.TrimSuffix(string(text), "\n"), "\n")
	var kept strings.Builder
	for i, line := range lines {
		if i%4 == 0 || i == len(lines)-1 {
			kept.WriteString(regexp.MustCompile(`/tmp/[^"]*/`).ReplaceAllString(line, "/srv/"))
		}
	}
	testkit.Must(t, os.WriteFile(file, []byte(kept.String()+"\n"), 0o600))
}
