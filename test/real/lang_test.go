//go:build real

package real_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
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

// langs are the folders of examples/: each has a worker, a client and a README
// of five lines with the command lines of both.
var langs = []string{"ruby", "python", "node", "go"}

// A langExample is what a README of examples/ says.
type langExample struct {
	flags  []string // of cabrank run, before "--"
	worker []string // the command after "--"
	client []string // a command whose last word is localhost:8080
}

// Workers and clients understand each other without cabrank: a failure behind
// it is then its own.
func TestLanguagesDirect(t *testing.T) {
	for _, lang := range langs {
		t.Run(lang+" worker", func(t *testing.T) {
			var loose []string
			if lang == "go" {
				// At a deadline grpc-go resets the stream with CANCEL; other clients
				// may see that before their own clock says DEADLINE_EXCEEDED.
				loose = []string{"deadline"}
			}
			runLangClients(t, startLangWorker(t, lang), loose...)
		})
	}
}

// The literal command line of each README works, and clients of every language
// see through cabrank what they see without it: all four kinds of call, error
// details, metadata in headers and trailers, deadlines and cancels.
func TestLanguagesBehindCabrank(t *testing.T) {
	for _, lang := range langs {
		t.Run(lang+" worker", func(t *testing.T) {
			example := readLangExample(t, lang)
			args := slices.Concat(example.flags, []string{"--"}, example.worker)
			c := StartCabrankEnv(t, langEnv(t), args...)
			c.WaitReady(langBound)
			runLangClients(t, c.Addr)
			c.Stop()
		})
	}
}

// The same workers on unix sockets (R19); one client is enough to tell.
func TestLanguagesOnUnixSockets(t *testing.T) {
	for _, lang := range langs {
		t.Run(lang+" worker", func(t *testing.T) {
			c := startLangCabrank(t, lang, "--workers", "2", "--transport", "unix")
			runLangClient(t, "go", c.Addr)
			c.Stop()
		})
	}
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

// runLangClients runs the client of every language, one after the other.
func runLangClients(t *testing.T, addr string, loose ...string) {
	t.Helper()
	for _, lang := range langs {
		t.Run(lang+" client", func(t *testing.T) { runLangClient(t, lang, addr, loose...) })
	}
}

// runLangClient runs one client and compares what it prints, one line of JSON
// per case, with testdata/expected.json, except for the loose cases.
func runLangClient(t *testing.T, lang, addr string, loose ...string) {
	t.Helper()
	command := slices.Clone(readLangExample(t, lang).client)
	command[len(command)-1] = addr
	client := startLangProcess(t, nil, command)
	if code := client.ExitCode(langBound); code != 0 {
		t.Errorf("the client ended with exit code %d", code)
	}
	got := map[string]any{}
	for line := range strings.Lines(client.Output()) {
		var result struct {
			Case string `json:"case"`
			Got  any    `json:"got"`
		}
		if err := json.Unmarshal([]byte(line), &result); err != nil {
			t.Fatalf("line %q of the client: %v", line, err)
		}
		got[result.Case] = result.Got
	}
	want := expectedOfLangs(t)
	for _, name := range loose {
		want[name] = got[name]
	}
	compareLang(t, got, want)
}

func compareLang(t *testing.T, got, want map[string]any) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if !reflect.DeepEqual(got[name], want[name]) {
			t.Errorf("%s: got %v, want %v", name, got[name], want[name])
		}
	}
	if len(got) > len(want) {
		t.Errorf("more cases than testdata/expected.json has: %v", slices.Sorted(maps.Keys(got)))
	}
}

func expectedOfLangs(t *testing.T) map[string]any {
	t.Helper()
	text, err := os.ReadFile("testdata/expected.json")
	if err != nil {
		t.Fatal(err)
	}
	var expected map[string]any
	if err := json.Unmarshal(text, &expected); err != nil {
		t.Fatal(err)
	}
	return expected
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
