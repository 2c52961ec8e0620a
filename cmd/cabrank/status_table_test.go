package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/cabrank/cabrank/internal/admin"
	"github.com/cabrank/cabrank/internal/cli"
	"github.com/cabrank/cabrank/internal/testkit"
)

// noon is when the statuses of these tests are looked at.
func noon() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) }

func before(d time.Duration) time.Time { return noon().Add(-d) }

func calm() admin.Status {
	return admin.Status{
		Version: "1.2.3", PID: 4711, Started: before(76 * time.Hour), State: "serving", Generation: 1, Wanted: 2, Ready: 2,
		Listeners: []admin.Listener{{Kind: "calls", Address: "0.0.0.0:8080"}, {Kind: "probes", Address: "[::]:5555"}},
		Workers: []admin.WorkerStatus{
			{Name: "worker-1", State: "ready", Since: before(3*time.Hour + 12*time.Minute), PID: 4712, Address: "127.0.0.1:9000", Generation: 1, Slots: 5},
			{Name: "worker-2", Index: 1, State: "ready", Since: before(26 * time.Hour), PID: 4713, Address: "127.0.0.1:9001", Generation: 1,
				Slots: 5, InFlight: 3, Served: 120345, Restarts: map[string]int{"signal": 1}, LastExit: "signal: killed", MemoryBytes: 212 << 20},
		},
		InFlight: 3,
	}
}

// rolling is a restart in its middle, with all that can be said of a worker.
func rolling() admin.Status {
	s := calm()
	s.Generation, s.Wanted, s.Ready = 2, 3, 2
	s.Queue = admin.QueueStatus{Waiting: 12, OldestSeconds: 1.25, Overload: true}
	s.Roll = &admin.RollStatus{Reason: "roll", Running: true, Completed: 1, Total: 3, Step: "draining worker-1 (2 calls)"}
	s.Scaling = &admin.Scaling{Min: 2, Max: 8}
	s.Workers[0].State, s.Workers[0].Ghosts, s.Workers[0].Since = "draining", 2, before(4200*time.Millisecond)
	s.Workers[1].Generation = 2
	s.Workers = append(s.Workers, admin.WorkerStatus{
		Name: "worker-3", Index: 2, State: "crash loop", Since: before(65 * time.Second), Address: "127.0.0.1:9002", Generation: 1, Slots: 5,
		Restarts: map[string]int{"exit": 17, "boot timeout": 1}, LastExit: "exit status 7",
	}, admin.WorkerStatus{
		Name: "worker-4", Index: 3, State: "starting", Since: before(300 * time.Millisecond), PID: 4999, Address: "127.0.0.1:9003", Generation: 2,
		Slots: 5,
	})
	return s
}

func upstreamsOnly() admin.Status {
	s := calm()
	s.Workers, s.Wanted, s.Ready, s.State = nil, 0, 0, "stopping"
	s.Upstreams = []admin.UpstreamStatus{
		{Address: "10.0.0.7:50051", State: "ready", Since: before(time.Minute), From: []string{"dns:workers.example:50051"}, Slots: 5, InFlight: 3, Served: 9},
		{Address: "10.0.0.8:50051", State: "unreachable", Slots: 5, Ghosts: 1, Reason: "connection refused"},
		{Address: "10.0.0.9:50051", State: "drained", Since: before(2 * time.Hour), Slots: 5},
	}
	s.Names = []admin.NameStatus{{Name: "dns:workers.example:50051", Addresses: 1}, {Name: "srv:_grpc._tcp.gone.example"}}
	s.Roll = &admin.RollStatus{Reason: "roll", Ended: before(90 * time.Second), Error: "the new workers do not get ready, the others go on: worker-3: exit (exit status 7)"}
	s.Config.Reload = &admin.ReloadStatus{Time: before(5 * time.Second), Error: "cabrank.yml:3: colour: unknown key"}
	return s
}

// What people see. The files are written anew with UPDATE_GOLDEN=1.
func TestStatusText(t *testing.T) {
	colors := cli.Screen{Terminal: true, Colored: true, Width: 200, Height: 50}
	for name, text := range map[string]string{
		"calm":      statusText(calm(), noon(), cli.Screen{}),
		"rolling":   statusText(rolling(), noon(), cli.Screen{}),
		"colors":    statusText(rolling(), noon(), colors),
		"narrow":    statusText(rolling(), noon(), cli.Screen{Terminal: true, Width: 60, Height: 7}),
		"upstreams": statusText(upstreamsOnly(), noon(), cli.Screen{}),
		"starting":  statusText(admin.Status{Version: "dev", PID: 1, State: "starting", Started: noon(), Wanted: 4}, noon(), cli.Screen{}),
	} {
		file := filepath.Join("testdata", "status", name+".golden")
		if os.Getenv("UPDATE_GOLDEN") != "" {
			testkit.Must(t, os.WriteFile(file, []byte(text), 0o600))
		}
		want := testkit.ReadFile(t, file)
		testkit.Want(t, text == string(want), "%s: got\n%s\nwant\n%s", name, text, want)
	}
}

// What is replaced in place never wraps or scrolls.
func TestStatusFitsTheScreen(t *testing.T) {
	for _, on := range []cli.Screen{{Terminal: true, Width: 40, Height: 5}, {Terminal: true, Width: 20, Height: 3}} {
		text := statusText(rolling(), noon(), on)
		lines := strings.Count(text, "\n")
		testkit.Want(t, lines < on.Height, "%d lines on a screen of %d", lines, on.Height)
		for line := range strings.Lines(text) {
			n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n"))
			testkit.Want(t, n < on.Width, "%d columns on a screen of %d: %s", n, on.Width, line)
		}
	}
}

func TestBrief(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 0: "0s", 340 * time.Millisecond: "0.3s", 4200 * time.Millisecond: "4.2s", 9990 * time.Millisecond: "9.9s",
		59 * time.Second: "59s", 61 * time.Second: "1m01s", 3*time.Hour + 5*time.Minute: "3h05m", 76 * time.Hour: "3d04h",
	} {
		testkit.Equal(t, brief(d), want, "%v", d)
	}
}
