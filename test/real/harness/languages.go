package harness

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/cabrank/cabrank/examples/go/workpb"
	"github.com/cabrank/cabrank/internal/testkit"
)

// LangBound is how long a worker may take to start or a client to end: `go run`
// compiles first.
const LangBound = time.Minute

// CallBound is the deadline of a call that takes a millisecond on an idle
// machine: a call that waits for it has been lost.
const CallBound = 30 * time.Second

// A LangExample is what a README of examples/ says.
type LangExample struct {
	Flags  []string // of cabrank run, before "--"
	Worker []string // the command after "--"
	Client []string // a command whose last word is localhost:8080
}

// StartLangCabrank starts cabrank over the worker of a language with flags of
// the test's own and waits until it is ready.
func StartLangCabrank(t testing.TB, lang string, flags ...string) *Cabrank {
	t.Helper()
	return StartLangCabrankEnv(t, lang, nil, flags...)
}

// StartLangCabrankEnv is StartLangCabrank with additional environment.
func StartLangCabrankEnv(t testing.TB, lang string, env []string, flags ...string) *Cabrank {
	t.Helper()
	args := slices.Concat(flags, []string{"--"}, ReadLangExample(t, lang).Worker)
	c := StartCabrankEnv(t, append(LangEnv(t), env...), args...)
	c.WaitReady(LangBound)
	return c
}

// StartLangWorker starts a worker without cabrank, with the additional
// "NAME=value" environment, and returns its address when it is ready.
func StartLangWorker(t testing.TB, lang string, env ...string) string {
	t.Helper()
	return StartWorkerProcess(t, env, ReadLangExample(t, lang).Worker)
}

// StartWorkerProcess is StartLangWorker for any command.
func StartWorkerProcess(t testing.TB, env, command []string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "cabrank-lang-") //nolint:usetesting // t.TempDir is too long for a socket's path
	testkit.Must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	addr := "unix:" + filepath.Join(dir, "worker.sock")
	StartLangProcess(t, append(env, "CABRANK_ADDR="+addr), command)
	client := healthpb.NewHealthClient(Dial(t, addr))
	ctx, cancel := context.WithTimeout(t.Context(), LangBound)
	defer cancel()
	reply, err := client.Check(ctx, &healthpb.HealthCheckRequest{}, grpc.WaitForReady(true))
	testkit.Need(t, err == nil && reply.GetStatus() == healthpb.HealthCheckResponse_SERVING,
		"health of the worker %q: %v, %v; want SERVING", command, reply.GetStatus(), err)
	return addr
}

// langStep finds the command lines of a README: "- Start: `cabrank run …`".
var langStep = regexp.MustCompile("(?m)^- (Start|Call): `([^`]+)`$")

// ReadLangExample reads the command lines that people are told to type.
func ReadLangExample(t testing.TB, lang string) LangExample {
	t.Helper()
	text := testkit.ReadFile(t, filepath.Join(Root(t), "examples", lang, "README.md"))
	if lines := strings.Count(string(text), "\n"); lines != 6 {
		t.Errorf("examples/%s/README.md has %d lines, want 6", lang, lines)
	}
	steps := map[string][]string{}
	for _, step := range langStep.FindAllStringSubmatch(string(text), -1) {
		steps[step[1]] = strings.Fields(step[2])
	}
	start, ok := cutWords(steps["Start"], "cabrank", "run")
	end := slices.Index(start, "--")
	client := steps["Call"]
	testkit.Need(t, ok && end >= 0 && len(client) >= 2 && client[len(client)-1] == "localhost:8080",
		"examples/%s/README.md: no line '- Start: `cabrank run … -- …`', or no '- Call: `… localhost:8080`'", lang)
	return LangExample{Flags: start[:end], Worker: start[end+1:], Client: client}
}

// cutWords removes words from the beginning of a command line.
func cutWords(line []string, words ...string) (rest []string, ok bool) {
	if len(line) < len(words) || !slices.Equal(line[:len(words)], words) {
		return nil, false
	}
	return line[len(words):], true
}

// LangEnv puts the virtual environment with the pinned packages first, as
// activating it does.
func LangEnv(t testing.TB) []string {
	t.Helper()
	python := Built(t, filepath.Join(Root(t), ".deps", "python", "bin", "python3"), "scripts/install-deps.sh workers")
	return []string{fmt.Sprintf("PATH=%s%c%s", filepath.Dir(python), filepath.ListSeparator, os.Getenv("PATH"))}
}

// StartLangProcess starts a command line of a README with that environment.
func StartLangProcess(t testing.TB, env, command []string) *Process {
	t.Helper()
	// env finds the program in the PATH that it is given, as a shell would.
	return StartProcess(t, append(LangEnv(t), env...), "/usr/bin/env", command...)
}

// Dial connects when it is first used, in clear text unless more options say otherwise; the
// end of the test disconnects.
func Dial(t testing.TB, addr string, more ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	options := []grpc.DialOption{grpc.WithNoProxy(), grpc.WithTransportCredentials(insecure.NewCredentials())}
	conn, err := grpc.NewClient(addr, append(options, more...)...)
	testkit.Must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// DialFrom is Dial from a chosen address of this machine.
func DialFrom(t testing.TB, from, addr string) *grpc.ClientConn {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	return Dial(t, addr, grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
		return dialer.DialContext(ctx, "tcp", addr)
	}))
}

// CallCPU makes n short calls over one connection, inFlight at a time, and
// counts those that failed by code and message.
func CallCPU(t testing.TB, conn *grpc.ClientConn, n, inFlight int) map[string]int {
	t.Helper()
	client := workpb.NewWorkClient(conn)
	var (
		callers sync.WaitGroup
		begun   atomic.Int64
		tally   Tally
	)
	for range inFlight {
		callers.Go(func() {
			for begun.Add(1) <= int64(n) {
				tally.Count(CallCPUOnce(t.Context(), client))
			}
		})
	}
	callers.Wait()
	return tally.Failed()
}

// Langs are the folders of examples/: each has a worker, a client and a README
// of six lines with the command lines of both.
func Langs() []string { return []string{"ruby", "python", "node", "go"} }

// OneThread starts cabrank over two real workers of one thread each, which keep
// records of their Io calls in a folder.
func OneThread(t testing.TB, lang string, more ...string) (c *Cabrank, records string) {
	t.Helper()
	records = t.TempDir()
	scripts := filepath.Join(Root(t), "test", "real", "harness", "testdata")
	commands := map[string][]string{
		"python": {"python3", filepath.Join(scripts, "timed_worker.py"), records},
		"ruby":   {"ruby", filepath.Join(scripts, "timed_worker.rb"), records},
	}
	env := slices.Concat(LangEnv(t), []string{"POOL_SIZE=1", "RAILS_MAX_THREADS=1", "CABRANK_EXPLAIN=true"}, more)
	args := []string{"--transport", "unix", "--workers", "2", "--min-ready", "2", "--slots", "1", "--"}
	c = StartCabrankEnv(t, env, append(args, commands[lang]...)...)
	c.WaitReady(LangBound)
	return c, records
}
