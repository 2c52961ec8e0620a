//go:build real || soak

package operations_test

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

var update = flag.Bool("update", false, "write deploy/kubernetes anew, as the chart renders it")

// The chart is well formed, says what is wrong with values, and renders objects that a Kubernetes
// takes; the plain manifests are what it renders by default. Cabrank takes their configuration.
func TestChart(t *testing.T) {
	root := harness.Root(t)
	helm := harness.Built(t, filepath.Join(root, ".deps", "helm", "helm"), "scripts/install-deps.sh workers")
	validate := harness.Built(t, filepath.Join(root, ".deps", "kubernetes", "bin", "kubernetes-validate"), "scripts/install-deps.sh workers")
	chart := filepath.Join(root, "deploy", "helm", "cabrank")
	render := func(args ...string) ([]byte, error) {
		cmd := exec.CommandContext(t.Context(), helm, append([]string{"template", "shop", chart}, args...)...)
		var complaint bytes.Buffer
		cmd.Stderr = &complaint
		out, err := cmd.Output()
		if err != nil {
			return complaint.Bytes(), err
		}
		return out, nil
	}
	harness.StartLine(t, helm, "lint", "--strict", chart).WantExit(harness.Patience, 0)
	source := regexp.MustCompile(`(?m)^# Source: .*\n`)
	for _, mode := range []string{"pod", "sidecar", "relay"} {
		text, err := render("--set", "mode="+mode)
		testkit.Need(t, err == nil, "%s: %v\n%s", mode, err, text)
		plain := filepath.Join(root, "deploy", "kubernetes", mode+".yaml")
		text = append([]byte("# As deploy/helm/cabrank renders it, with mode: "+mode+" and the name shop.\n"), source.ReplaceAll(text, nil)...)
		if *update {
			testkit.Must(t, os.WriteFile(plain, text, 0o644))
		}
		if was, err := os.ReadFile(plain); err != nil || !bytes.Equal(was, text) {
			t.Errorf("%s is not what the chart renders (%v): go test -tags real -run TestChart ./test/real/operations -update", plain, err)
		}
		more, err := render("--set", "mode="+mode, "--set", "autoscaling.enabled=true", "--set", "env.RAILS_ENV=production", "--set", "nodeSelector.disk=ssd")
		testkit.Need(t, err == nil, "%s: %v\n%s", mode, err, more)
		for _, text := range [][]byte{text, more} {
			file := harness.WriteFile(t, "objects.yaml", text)
			harness.StartLine(t, validate, "--strict", "-k", "1.36", file).WantExit(harness.Patience, 0)
		}
		checkConfiguration(t, mode, string(text))
	}
	ways, err := filepath.Glob(filepath.Join(root, "examples", "fibonacci", "kubernetes", "*[^g].yaml")) // but for monitoring.yaml
	testkit.Need(t, err == nil && len(ways) >= 5, "%v, %v", ways, err)
	for _, file := range ways {
		harness.StartLine(t, validate, "--strict", "-k", "1.36", file).WantExit(harness.Patience, 0)
	}
	for values, want := range map[string]string{
		"mode=mesh": "mode", "replicas=-1": "replicas", "colour=red": "colour", "user=0": "user", "autoscaling.least=1": "least",
	} {
		said, err := render("--set", values)
		testkit.Want(t, err != nil && bytes.Contains(said, []byte(want)), "%s: %v\n%s", values, err, said)
	}
	all, err := render("--set", "monitoring.podMonitor=true", "--set", "monitoring.prometheusRule=true", "--set", "monitoring.dashboard=true")
	if err != nil || !bytes.Contains(all, []byte("kind: PodMonitor")) || !bytes.Contains(all, []byte("alert: CabrankErrors")) || !bytes.Contains(all, []byte(`"title": "Cabrank"`)) {
		t.Errorf("with monitoring: %v\n%.2000s", err, all)
	}
}

// checkConfiguration has cabrank check what a manifest gives it: file, command and time to stop.
func checkConfiguration(t *testing.T, mode, manifest string) {
	t.Helper()
	_, text, _ := strings.Cut(manifest, "  cabrank.yml: |\n")
	text, _, _ = strings.Cut(text, "\n---")
	file := harness.WriteFile(t, "cabrank.yml", strings.ReplaceAll(text, "\n    ", "\n")[len("    "):]+"\n")
	command := regexp.MustCompile(`command: \[?"?cabrank"?, ?"?run"?.*`).FindString(manifest)
	if command == "" {
		command = regexp.MustCompile(`command: \["cabrank".*`).FindString(manifest)
	}
	_, words, _ := strings.Cut(command, "[")
	args := strings.FieldsFunc(strings.TrimSuffix(words, "]"), func(r rune) bool { return strings.ContainsRune(`," `, r) })
	testkit.Need(t, len(args) >= 4 && args[1] == "run", "%s: no command in %q", mode, command)
	args[1] = "check"
	for i, arg := range args {
		if arg == "/etc/cabrank/cabrank.yml" {
			args[i] = file
		}
	}
	harness.StartCLI(t, args[1:]...).WantExit(harness.Patience, 0)
}
