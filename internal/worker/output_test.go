package worker

import (
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

func TestOutputFormats(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	const wrapped = `{"time":"2026-01-02T03:04:05.000006Z","level":"INFO","msg":`
	for _, test := range []struct {
		json         bool
		hook, stream string
		text, want   string
	}{
		{false, "", "", `plain`, `worker-1 | plain`},
		{false, "", "stderr", ``, `worker-1 | `},
		{false, "before_stop", "", `plain`, `worker-1 before_stop | plain`},
		{true, "before_stop", "", `plain`, wrapped + `"plain","worker":"worker-1","hook":"before_stop"}`},
		{true, "", "stderr", `plain`, wrapped + `"plain","worker":"worker-1","stream":"stderr"}`},
		{true, "", "", `{"a": [1, {}]}`, `{"worker":"worker-1","a": [1, {}]}`},
		{true, "", "stderr", ` { "a":1}`, `{"worker":"worker-1","stream":"stderr","a":1}`},
		{true, "before_stop", "", `{"a":1}`, `{"worker":"worker-1","hook":"before_stop","a":1}`},
		{true, "", "", `{ }`, `{"worker":"worker-1"}`},
		{true, "", "stderr", `{"worker":7}`, `{"cabrank_worker":"worker-1","cabrank_stream":"stderr","worker":7}`},
		{true, "", "", `{"a":{"worker":7}}`, `{"worker":"worker-1","a":{"worker":7}}`},
		{true, "", "", `plain "x"`, wrapped + `"plain \"x\"","worker":"worker-1"}`},
		{true, "", "", `{broken`, wrapped + `"{broken","worker":"worker-1"}`},
		{true, "", "", `[1, {}]`, wrapped + `"[1, {}]","worker":"worker-1"}`},
		{true, "", "", `7`, wrapped + `"7","worker":"worker-1"}`},
		{true, "", "", "\xff", wrapped + `"\ufffd","worker":"worker-1"}`},
	} {
		by := speaker{Worker: "worker-1", Hook: test.hook, Stream: test.stream}
		got := string(Output{JSON: test.json}.append(nil, by, []byte(test.text), now))
		testkit.Want(t, got == test.want+"\n", "%q: got %q, want %q", test.text, got, test.want)
	}
}

// Interpreters that collect their output are known by the name of their program.
func TestUnbuffering(t *testing.T) {
	for program, want := range map[string]string{
		"/usr/bin/ruby3.1": "$stdout.sync = true", "/opt/ruby/bin/ruby": "$stdout.sync = true",
		"/usr/bin/python3.11": "PYTHONUNBUFFERED=1 in its environment",
		"/usr/bin/node":       "", "/srv/ruby/bin/worker": "", "": "",
	} {
		testkit.Equal(t, unbuffering(program), want, "%q", program)
	}
}
