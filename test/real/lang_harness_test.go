//go:build real || soak

package real_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

// langBound is how long a worker may take to start or a client to end: `go run`
// compiles first.
const langBound = time.Minute

// callBound is the deadline of a call that takes a millisecond on an idle
// machine: a call that waits for it has been lost.
const callBound = 30 * time.Second

// A langExample is what a README of examples/ says.
type langExample struct {
	flags  []string // of cabrank run, before "--"
	worker []string // the command after "--"
	client []string // a command whose last word is localhost:8080
}

// startLangCabrank starts cabrank over the worker of a language with flags of
// the test's own and waits until it is ready.
func startLangCabrank(t *testing.T, lang string, flags ...string) *Cabrank {
	t.Helper()
	args := slices.Concat(flags, []string{"--"}, readLangExample(t, lang).worker)
	c := StartCabrankEnv(t, langEnv(t), args...)
	c.WaitReady(langBound)
	return c
}

// startLangWorker starts a worker without cabrank, with the additional
// "NAME=value" environment, and returns its address when it is ready.
func startLangWorker(t *testing.T, lang string, env ...string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "cabrank-lang-") //nolint:usetesting // t.TempDir is too long for a socket's path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	addr := "unix:" + filepath.Join(dir, "worker.sock")
	startLangProcess(t, append(env, "CABRANK_ADDR="+addr), readLangExample(t, lang).worker)
	client := healthpb.NewHealthClient(dialLang(t, addr))
	ctx, cancel := context.WithTimeout(t.Context(), langBound)
	defer cancel()
	reply, err := client.Check(ctx, &healthpb.HealthCheckRequest{}, grpc.WaitForReady(true))
	if err != nil || reply.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		t.Fatalf("health of the %s worker: %v, %v; want SERVING", lang, reply.GetStatus(), err)
	}
	return addr
}

// langStep finds the command lines of a README: "- Start: `cabrank run …`".
var langStep = regexp.MustCompile("(?m)^- (Start|Call): `([^`]+)`$")

// readLangExample reads the command lines that people are told to type.
func readLangExample(t *testing.T, lang string) langExample {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(t), "examples", lang, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(string(text), "\n"); lines != 5 {
		t.Errorf("examples/%s/README.md has %d lines, want 5", lang, lines)
	}
	steps := map[string][]string{}
	for _, step := range langStep.FindAllStringSubmatch(string(text), -1) {
		steps[step[1]] = strings.Fields(step[2])
	}
	start, ok := cutWords(steps["Start"], "cabrank", "run")
	end := slices.Index(start, "--")
	client := steps["Call"]
	if !ok || end < 0 || len(client) < 2 || client[len(client)-1] != "localhost:8080" {
		t.Fatalf("examples/%s/README.md: no line '- Start: `cabrank run … -- …`', or no '- Call: `… localhost:8080`'", lang)
	}
	return langExample{flags: start[:end], worker: start[end+1:], client: client}
}

// cutWords removes words from the beginning of a command line.
func cutWords(line []string, words ...string) (rest []string, ok bool) {
	if len(line) < len(words) || !slices.Equal(line[:len(words)], words) {
		return nil, false
	}
	return line[len(words):], true
}

// langEnv puts the virtual environment with the pinned packages first, as
// activating it does.
func langEnv(t *testing.T) []string {
	t.Helper()
	python := built(t, filepath.Join(root(t), ".deps", "python", "bin", "python3"), "scripts/install-deps.sh workers")
	return []string{fmt.Sprintf("PATH=%s%c%s", filepath.Dir(python), filepath.ListSeparator, os.Getenv("PATH"))}
}

// startLangProcess starts a command line of a README with that environment.
func startLangProcess(t *testing.T, env, command []string) *Process {
	t.Helper()
	// env finds the program in the PATH that it is given, as a shell would.
	return StartProcess(t, append(langEnv(t), env...), "/usr/bin/env", command...)
}

// dialLang connects when it is first used; the end of the test disconnects.
func dialLang(t *testing.T, addr string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(addr, grpc.WithNoProxy(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}
