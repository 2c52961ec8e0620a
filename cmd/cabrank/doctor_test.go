package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/admin"
	"github.com/cabrank/cabrank/internal/cli"
	"github.com/cabrank/cabrank/internal/doctor"
	"github.com/cabrank/cabrank/internal/testkit"
)

// What was seen of real faults, each kept by TestDoctor (soak, -update) in a file of its name, is
// found first and with exit status 1; of calm ones nothing is.
func TestDoctorFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/doctor/*.json")
	testkit.Need(t, err == nil && len(files) >= 15, "%d files, %v", len(files), err)
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		var out, complaint bytes.Buffer
		status := execute(t.Context(), []string{"doctor", "--from", file, "--json"}, &out, &complaint)
		var said struct {
			Seconds  float64          `json:"seconds"`
			Findings []doctor.Finding `json:"findings"`
		}
		err = json.Unmarshal(out.Bytes(), &said)
		testkit.Need(t, err == nil, "%s: %v %s%s", name, err, &out, &complaint)
		if calm := strings.HasPrefix(name, "calm"); calm && (status != 0 || len(said.Findings) > 0) ||
			!calm && (status != 1 || said.Findings[0].Name != name || said.Findings[0].Do == "") {
			t.Errorf("%s: exit status %d, %+v", name, status, said)
		}
		testkit.Want(t, said.Seconds >= 9 && said.Seconds <= 12, "%s: %v s", name, said.Seconds)
	}
}

// People see what is worst, the last lines of a worker, and what to do.
func TestDoctorTellsPeople(t *testing.T) {
	var out bytes.Buffer
	testkit.Equal(t, execute(t.Context(), []string{"doctor", "--from", "testdata/doctor/crash_loop.json"}, &out, &out), 1, "exit status")
	for _, text := range []string{"error    worker-2 ends again and again: ", "\n         | no such table: orders\n", "\n         do: "} {
		testkit.Want(t, strings.Contains(out.String(), text), "no %q in\n%s", text, &out)
	}
	out.Reset()
	status := execute(t.Context(), []string{"doctor", "--from", "testdata/doctor/calm_idle.json"}, &out, &out)
	testkit.Want(t, status == 0 && strings.HasPrefix(out.String(), "nothing is wrong, as far as 10"), "exit status %d: %s", status, &out)
}

// Each wrong line is answered in one, with status 2.
func TestDoctorRefuses(t *testing.T) {
	odd := filepath.Join(t.TempDir(), "odd.json")
	testkit.Must(t, os.WriteFile(odd, []byte("{\"live\":{}}\n"), 0o600))
	for _, test := range []struct{ line, says string }{
		{"--from " + odd, "odd.json, line 1: not what cabrank doctor --save has written"},
		{"--from /nowhere/x", "no such file"},
		{"--for 10ms", "flag --for: 10ms; allowed: 1s to 10m0s"},
		{"--from x --for 2s", "flags --from and --for"},
		{"--control /nowhere/x", "nothing listens on /nowhere/x"},
		{"now", "unknown command"},
	} {
		var out bytes.Buffer
		status := execute(t.Context(), append([]string{"doctor"}, strings.Fields(test.line)...), &out, &out)
		testkit.Want(t, status == 2 && strings.Contains(out.String(), test.says) && strings.Count(out.String(), "\n") <= 2,
			"%s: exit status %d, %s", test.line, status, &out)
	}
}

// A cabrank that is too old, does not answer, or goes away is told of in one line, with status 1.
func TestDoctorOfOneThatDoesNotTell(t *testing.T) {
	for _, test := range []struct {
		name, says string
		answer     func(w http.ResponseWriter, asked int32)
	}{
		{"too old", "is older than this command and has no /v1/live: cabrank upgrade", func(w http.ResponseWriter, _ int32) {
			w.WriteHeader(http.StatusNotFound)
		}},
		{"silent", "has not answered within 200ms: is its process stopped?", nil},
		{"gone", "went away while it was looked at", func(w http.ResponseWriter, asked int32) {
			if asked > 2 {
				panic(http.ErrAbortHandler)
			}
			_, _ = io.WriteString(w, `{"pid": 7}`)
		}},
	} {
		path := filepath.Join(t.TempDir(), "s")
		on, err := net.Listen("unix", path)
		testkit.Must(t, err)
		var asked atomic.Int32
		server := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if test.answer == nil {
				<-r.Context().Done()
				return
			}
			test.answer(w, asked.Add(1))
		})}
		served := make(chan struct{})
		go func() { defer close(served); _ = server.Serve(on) }() // until Close
		client := admin.NewClient(path)
		d := doctoring{time: 5 * time.Second, limit: 200 * time.Millisecond}
		_, err = d.look(t.Context(), client)
		testkit.Want(t, err != nil && strings.Contains(err.Error(), test.says) && cli.Status(answered(err)) == 1, "%s: %v", test.name, err)
		client.Close()
		testkit.Must(t, server.Close())
		<-served
	}
}
