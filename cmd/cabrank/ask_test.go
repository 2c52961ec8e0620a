package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/admin"
	"github.com/cabrank/cabrank/internal/cli"
	"github.com/cabrank/cabrank/internal/testkit"
)

// scripted is a cabrank that answers as a test says: it implements the
// interfaces of the control.
type scripted struct {
	status admin.Status
	events []admin.Event // told by every command
	err    error         // of every command
	hangs  bool          // every command waits for the end of the control

	mu    sync.Mutex
	asked []string
}

func (s *scripted) Live() admin.Live { return admin.Live{} }

func (s *scripted) Status() admin.Status { return s.status }

func (s *scripted) Restart(ctx context.Context, r admin.RestartRequest, tell func(admin.Event)) error {
	return s.act(ctx, tell, "restart", r.Command, r.Force)
}

func (s *scripted) Drain(ctx context.Context, r admin.DrainRequest, tell func(admin.Event)) error {
	return s.act(ctx, tell, "drain", r.Target, r.Undo, r.Force)
}

func (s *scripted) Scale(ctx context.Context, r admin.ScaleRequest, tell func(admin.Event)) error {
	return s.act(ctx, tell, "scale", r.Workers, r.Auto)
}

func (s *scripted) Reload(ctx context.Context, _ admin.ReloadRequest, tell func(admin.Event)) error {
	return s.act(ctx, tell, "reload")
}

func (s *scripted) Upgrade(ctx context.Context, r admin.UpgradeRequest, tell func(admin.Event)) error {
	return s.act(ctx, tell, "upgrade", r.Workers)
}

func (s *scripted) Stop(ctx context.Context, r admin.StopRequest, tell func(admin.Event)) error {
	return s.act(ctx, tell, "stop", r.Now)
}

func (s *scripted) act(ctx context.Context, tell func(admin.Event), asked ...any) error {
	s.mu.Lock()
	s.asked = append(s.asked, strings.TrimSpace(fmt.Sprintln(asked...)))
	s.mu.Unlock()
	for _, e := range s.events {
		tell(e)
	}
	if s.hangs {
		<-ctx.Done()
		return errors.New("cabrank is stopping")
	}
	return s.err
}

// lastAsked returns the last command that came.
func (s *scripted) lastAsked() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.asked) == 0 {
		return ""
	}
	return s.asked[len(s.asked)-1]
}

// listen serves the script on a socket, until the end of the test.
func (s *scripted) listen(t *testing.T) (path string) {
	t.Helper()
	folder, err := os.MkdirTemp("", "ctl") //nolint:usetesting // paths of sockets are short
	testkit.Must(t, err)
	listener, err := admin.ListenControl(filepath.Join(folder, "s"))
	testkit.Must(t, err)
	server := admin.ServeControl(listener, admin.Controls{Observer: s, Fleet: s, Process: s, Journal: admin.NewJournal()}, slog.New(slog.DiscardHandler))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		err := server.Shutdown(ctx)
		testkit.Want(t, err == nil, "%v", err)
		os.RemoveAll(folder)
	})
	return listener.Path()
}

// says runs a command line and returns all that it printed.
func says(ctx context.Context, args ...string) (status int, stdout, stderr string) {
	var out, errs bytes.Buffer
	status = execute(ctx, args, &out, &errs)
	return status, out.String(), errs.String()
}

// Each command asks for what was written, and nothing is left out.
func TestCommandsAskForWhatWasWritten(t *testing.T) {
	testkit.CheckLeaks(t)
	cabrank := &scripted{}
	path := cabrank.listen(t)
	for line, want := range map[string]string{
		"restart":                     "restart [] false",
		"restart --force -- ruby -v":  "restart [ruby -v] true",
		"scale 8":                     "scale 8 false",
		"scale auto":                  "scale 0 true",
		"drain worker-2":              "drain worker-2 false false",
		"drain --undo 10.0.0.7:50051": "drain 10.0.0.7:50051 true false",
		"drain --force worker-2":      "drain worker-2 false true",
		"reload":                      "reload",
		"upgrade":                     "upgrade 0",
		"upgrade --upgrade-workers 2": "upgrade 2",
	} {
		args := strings.Fields(line)
		args = slices.Insert(args, 1, "--control", path)
		status, _, stderr := says(t.Context(), args...)
		testkit.Want(t, status == cli.Done && stderr == "", "%s: status %d, %s", line, status, stderr)
		testkit.Equal(t, cabrank.lastAsked(), want, "%s asks for", line)
	}
	// The variable is as good as the flag.
	t.Setenv("CABRANK_CONTROL", path)
	if status, _, stderr := says(t.Context(), "scale", "3"); status != cli.Done || cabrank.lastAsked() != "scale 3 false" {
		t.Errorf("by the variable: status %d, %s", status, stderr)
	}
}

// What takes long says at once how long it can take, and then each step.
func TestRestartShowsItsSteps(t *testing.T) {
	cabrank := &scripted{events: []admin.Event{
		{Step: "replacing workers", Total: 2, LimitSeconds: 172},
		{Step: "starting", Worker: "worker-3", Total: 2},
		{Step: "draining", Worker: "worker-1", Total: 2, Note: "3 calls"},
		{Step: "ended", Completed: 1, Total: 2},
	}}
	path := cabrank.listen(t)
	status, stdout, stderr := says(t.Context(), "restart", "--control", path)
	want := "0/2 replacing workers, at most 2m52s\n0/2 starting worker-3\n0/2 draining worker-1 (3 calls)\n1/2 ended\nrestart done in 0"
	testkit.Want(t, status == cli.Done && stderr == "" && strings.HasPrefix(stdout, want),
		"status %d, %s\n%s\nwant\n%s", status, stderr, stdout, want)
	_, stdout, _ = says(t.Context(), "restart", "--json", "--control", path)
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	testkit.Want(t, len(lines) == 5 && strings.Contains(lines[0], `"limit_seconds":172`) && strings.Contains(lines[4], `"done":true`),
		"as JSON:\n%s", stdout)
}

// A command that has cut calls says how many, and has an exit status for it, unless
// that is what was asked for. A failure is a failure first.
func TestCommandsThatCutCalls(t *testing.T) {
	cut := []admin.Event{{Step: "replacing workers", Total: 1}, {CallsCut: 1}, {CallsCut: 2}}
	done := (&scripted{events: cut}).listen(t)
	failed := (&scripted{events: cut, err: errors.New("no")}).listen(t)
	for _, test := range []struct {
		line   string
		socket string
		status int
		last   string
	}{
		{"restart", done, cli.Cut, "s, 3 calls were cut\n"},
		{"restart --force", done, cli.Done, "s, 3 calls were cut\n"},
		{"restart --json", done, cli.Cut, `"calls_cut":3,"done":true}` + "\n"},
		{"drain worker-1", done, cli.Cut, "s, 3 calls were cut\n"},
		{"restart", failed, cli.Failed, "3 calls were cut\n"},
	} {
		status, stdout, _ := says(t.Context(), append(strings.Fields(test.line), "--control", test.socket)...)
		if lines := strings.SplitAfter(stdout, "\n"); status != test.status || len(lines) != 3 || !strings.HasSuffix(lines[1], test.last) {
			t.Errorf("%s: status %d, %q; want %d, %q", test.line, status, stdout, test.status, test.last)
		}
	}
}

func TestReloadSaysWhatItFound(t *testing.T) {
	cabrank := &scripted{events: []admin.Event{{Reload: &admin.Reload{
		Applied: []string{"queue.length", "lanes"}, NeedsRestart: []string{"workers.env"}, NeedsUpgrade: []string{"listen"}, Warnings: []string{"slow"},
	}}}}
	_, stdout, _ := says(t.Context(), "reload", "--control", cabrank.listen(t))
	want := "applied: queue.length, lanes\napplies to workers that start from now on (cabrank restart): workers.env\n" +
		"needs a new cabrank (cabrank upgrade): listen\nwarning: slow\nreload done in "
	testkit.Want(t, strings.HasPrefix(stdout, want), "got\n%s\nwant\n%s", stdout, want)
	testkit.Equal(t, reloadText(admin.Reload{}), "nothing has changed\n", "without changes")
}

// Failures: 1 for what cabrank says of its work, 2 for what nobody could do.
func TestCommandsFail(t *testing.T) {
	failing := (&scripted{err: errors.New("the new workers do not get ready")}).listen(t)
	refusing := (&scripted{err: &admin.MisuseError{Reason: "there is no worker-9"}}).listen(t)
	faulty := (&scripted{err: &admin.FaultsError{Reason: "nothing was changed", Faults: []string{"c.yml:1: a", "c.yml:2: b"}}}).listen(t)
	gone := filepath.Join(t.TempDir(), "none")
	for _, test := range []struct {
		args   []string
		status int
		stderr string
	}{
		{[]string{"restart", "--control", failing}, cli.Failed, "cabrank: the new workers do not get ready\n"},
		{[]string{"drain", "worker-9", "--control", refusing}, cli.Usage, "cabrank: there is no worker-9\n"},
		{[]string{"reload", "--control", faulty}, cli.Failed, "cabrank: nothing was changed\ncabrank: c.yml:1: a\ncabrank: c.yml:2: b\n"},
		{[]string{"status", "--control", gone}, cli.Usage, "cabrank: nothing listens on " + gone + "; is cabrank running? --control names another socket\n"},
		{[]string{"stop", "--control", gone}, cli.Usage, "cabrank: nothing listens on " + gone + "; is cabrank running? --control names another socket\n"},
		{[]string{"scale", "many"}, cli.Usage, "cabrank: \"many\" is no number of workers; allowed: 1 and more, or auto\n"},
		{[]string{"restart", "ruby"}, cli.Usage, "cabrank: unexpected argument \"ruby\"; the command of the workers follows --, as in cabrank restart -- ruby\n"},
		{[]string{"restart", "--control", failing, "--"}, cli.Usage, "cabrank: nothing follows --: name the command of the workers, or leave out the --\n"},
		{[]string{"upgrade", "--upgrade-workers", "0"}, cli.Usage, "cabrank: flag --upgrade-workers: \"0\" is no number of workers; allowed: 1 and more\n"},
		{[]string{"status", "--control", "off"}, cli.Usage, "cabrank: flag --control: off is no socket; --control names that of a cabrank\n"},
		{[]string{"status", "--watch", "2s"}, cli.Usage, "cabrank: unexpected argument \"2s\"; did you mean --watch=2s?\n"},
		{[]string{"status", "worker-1"}, cli.Usage, "cabrank: unexpected argument \"worker-1\"; cabrank status shows all of it\n"},
		{[]string{"status", "--watch=0s"}, cli.Usage, "cabrank: flag --watch: 0s is too often; allowed: 100ms and more\n"},
		{[]string{"status", "--watch=1ms"}, cli.Usage, "cabrank: flag --watch: 1ms is too often; allowed: 100ms and more\n"},
	} {
		status, _, stderr := says(t.Context(), test.args...)
		testkit.Want(t, status == test.status && stderr == test.stderr,
			"%v: status %d, %q; want %d, %q", test.args, status, stderr, test.status, test.stderr)
	}
}

// Without --control the only cabrank of this user is meant.
func TestWhichCabrank(t *testing.T) {
	runtime, err := os.MkdirTemp("", "run") //nolint:usetesting // paths of sockets are short
	testkit.Must(t, err)
	defer os.RemoveAll(runtime)
	t.Setenv("XDG_RUNTIME_DIR", runtime)
	t.Setenv("TMPDIR", runtime)
	t.Setenv("CABRANK_CONTROL", "auto")
	folder := admin.ControlFolders()[0]
	status, _, stderr := says(t.Context(), "status")
	testkit.Want(t, status == cli.Usage && strings.HasPrefix(stderr, "cabrank: nothing listens in "+folder),
		"with none: status %d, %s", status, stderr)
	var paths []string
	for port := range 2 {
		listener, err := admin.ListenControlAuto(folder, 8080+port)
		testkit.Must(t, err)
		server := admin.ServeControl(listener, admin.Controls{Observer: &scripted{status: calm()}, Fleet: &scripted{}, Process: &scripted{}, Journal: admin.NewJournal()}, slog.New(slog.DiscardHandler))
		t.Cleanup(func() { _ = server.Shutdown(context.Background()) })
		paths = append(paths, listener.Path())
		status, stdout, stderr := says(t.Context(), "status")
		if port == 0 && (status != cli.Done || !strings.HasPrefix(stdout, "ready 2 of 2, queue 0, calls 3\n")) {
			t.Errorf("with one: status %d, %s%s", status, stdout, stderr)
		}
		if want := "cabrank: several cabranks run: choose one with --control, of " + strings.Join(paths, ", ") + "\n"; port == 1 && (status != cli.Usage || stderr != want) {
			t.Errorf("with two: status %d, %s", status, stderr)
		}
	}
	// Without one there, the service of the host is meant.
	if client, err := onlyClient([]string{t.TempDir(), folder}, paths[1]); err != nil {
		t.Errorf("with a service: %v", err)
	} else {
		client.Close()
	}
	// Those of another folder are named and nothing is asked of them.
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	other := admin.ControlFolders()[0]
	want := "cabrank: nothing listens in " + other + "; is one of these meant? --control " + strings.Join(paths, ", --control ") + "\n"
	if status, _, stderr := says(t.Context(), "stop"); status != cli.Usage || stderr != want {
		t.Errorf("with two elsewhere: status %d, %s, want %s", status, stderr, want)
	}
	t.Setenv("CABRANK_CONTROL", "off")
	if status, _, stderr := says(t.Context(), "status"); status != cli.Usage || !strings.Contains(stderr, "variable CABRANK_CONTROL: off is no socket") {
		t.Errorf("with off: status %d, %s", status, stderr)
	}
}

// Who does not want to wait any longer leaves, and what was begun goes on.
func TestLeavingARestart(t *testing.T) {
	cabrank := &scripted{hangs: true, events: []admin.Event{{Step: "replacing workers", Total: 2, LimitSeconds: 60}}}
	ctx, leave := context.WithCancel(t.Context())
	path := cabrank.listen(t)
	done := make(chan string)
	go func() {
		status, _, stderr := says(ctx, "restart", "--control", path)
		done <- fmt.Sprint(status, " ", stderr)
	}()
	testkit.Eventually(t, 20*time.Second, "the restart to begin", func() bool { return cabrank.lastAsked() != "" })
	leave()
	got, want := <-done, "1 cabrank: not waiting any longer: the restart goes on; cabrank status shows how far it is\n"
	testkit.Want(t, got == want, "got %q, want %q", got, want)
}

// Blocks for files, and whole objects for programs, one for each interval.
func TestStatusWatch(t *testing.T) {
	path := (&scripted{status: calm()}).listen(t)
	for _, test := range []struct {
		args []string
		mark string
	}{
		{[]string{"status", "--watch=100ms"}, "ready 2 of 2"},
		{[]string{"status", "--watch=100ms", "--json"}, `{"version":"1.2.3"`},
	} {
		ctx, leave := context.WithCancel(t.Context())
		out := &testkit.Buffer{}
		done := make(chan int)
		go func() {
			done <- execute(ctx, append(test.args, "--control", path), out, out)
		}()
		testkit.Eventually(t, 20*time.Second, "three looks", func() bool { return strings.Count(out.String(), test.mark) >= 3 })
		leave()
		testkit.Equal(t, <-done, cli.Done, "%v: status", test.args)
		testkit.Want(t, !strings.Contains(out.String(), "\x1b"), "%v: escapes in a file: %q", test.args, out.String())
	}
}

// On a terminal a step replaces the one before; what is promised stays.
func TestProgressInPlace(t *testing.T) {
	var out bytes.Buffer
	p := newProgress(&out, "restart", time.Now())
	p.screen = cli.Screen{Terminal: true, Width: 20}
	p.event(admin.Event{Step: "replacing workers", Total: 2, LimitSeconds: 60})
	p.event(admin.Event{Step: "starting", Worker: "worker-3", Total: 2})
	p.event(admin.Event{Step: "draining", Worker: "worker-1", Total: 2, Note: "3 calls"})
	p.event(admin.Event{Error: "no"})
	p.end()
	want := "0/2 replacing workers, at most 1m00s\n0/2 starting worker\r\x1b[K0/2 draining worker\n"
	testkit.Want(t, out.String() == want, "got  %q\nwant %q", out.String(), want)
}

// A shell is offered the names of what can be drained.
func TestCompletionOfWorkers(t *testing.T) {
	s := calm()
	s.Upstreams = upstreamsOnly().Upstreams[:1]
	path := (&scripted{status: s}).listen(t)
	_, stdout, _ := says(t.Context(), "__complete", "drain", "--control", path, "")
	want := "worker-1\nworker-2\n10.0.0.7:50051\n"
	testkit.Want(t, strings.HasPrefix(stdout, want), "got %q, want %q", stdout, want)
}
