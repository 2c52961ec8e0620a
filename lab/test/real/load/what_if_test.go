//go:build real || soak

package load_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/lab/internal/lab"
	"github.com/cabrank/cabrank/lab/internal/whatif"
	"github.com/cabrank/cabrank/test/real/harness"
)

func startWhatIf(t *testing.T, args ...string) *harness.Process {
	t.Helper()
	return harness.StartProcess(t, nil, harness.LabBinary(t), append([]string{"what-if"}, args...)...)
}

// From a service to the number of workers, and from what was measured then to another
// rate without the service.
func TestLabWhatIf(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "results")
	first := startWhatIf(t, startDemo(t), sayHello, "--data", `{"name": "you"}`, "--slots", "1,2", "--calibrate", "1s", "--warmup", "100ms",
		"--rate", "200", "--timeout", "5s", "--calls", "10000", "--fail", "p99<2s", "--out", folder)
	if code := first.ExitCode(harness.Patience); code != 0 || !strings.Contains(first.Output(), "hold p99<2s at 200/s; least request would take") {
		t.Fatalf("exit code %d:\n%s", code, first.Output())
	}
	text, err := os.ReadFile(filepath.Join(folder, lab.WhatIfFile))
	if err != nil {
		t.Fatal(err)
	}
	var r whatif.Answer
	if err := json.Unmarshal(text, &r); err != nil || len(r.Calibrations) != 2 || !r.Holds() || len(r.Machine) == 0 {
		t.Errorf("%d calibrations, %v, %v", len(r.Calibrations), r.Machine, err)
	}
	again := startWhatIf(t, "--service-times", filepath.Join(folder, lab.WhatIfFile), "--rate", "200", "--workers", "1..2", "--calls", "10000", "--fail", "p99<1ms")
	if code := again.ExitCode(harness.Patience); code != 1 || !strings.Contains(again.Output(), "None of 1 to 2 workers of 2 slots holds p99<1ms") {
		t.Errorf("exit code %d:\n%s", code, again.Output())
	}
}

func TestLabWhatIfRefuses(t *testing.T) {
	for want, args := range map[string][]string{
		"which service?": {"--rate", "1"},
		"for which rate? give --rate, such as --rate 300":                  {"--service-times", os.DevNull},
		`--rate "1..2": want one rate, such as 300`:                        {"--service-times", os.DevNull, "--rate", "1..2"},
		`--workers "x": want numbers from 1 on`:                            {"--service-times", os.DevNull, "--rate", "1", "--workers", "x"},
		"unexpected argument \"a\": with --service-times nobody is called": {"--service-times", os.DevNull, "a"},
		"it is empty":                    {"--service-times", os.DevNull, "--rate", "1"},
		"--service-times: open /no/such": {"--service-times", "/no/such", "--rate", "1"},
		"--echo is for --service-times":  {"a", "b", "--rate", "1", "--echo", "1ms"},
		"which requests?":                {"localhost:1", "b", "--rate", "1"},
	} {
		p := startWhatIf(t, args...)
		if code := p.ExitCode(harness.Patience); code != 2 || !strings.Contains(p.Log(), want) || strings.Count(p.Log(), "\n") > 1 {
			t.Errorf("%q: exit code %d, %q, want %q", args, code, p.Log(), want)
		}
	}
}
