//go:build real

package real_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// server.reuse_port: two on one port; one stops, and callers that never pause
// see nothing of it (R17).
func TestTwoOnOnePort(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cabrank.yml")
	if err := os.WriteFile(file, []byte("server:\n  reuse_port: true\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	flags := slices.Concat([]string{"--config", file, "--transport", "unix", "--workers", "2", "--slots", "8", "--"}, faultWorker(t))
	first := StartCabrank(t, flags...)
	first.waitWorkers(2)
	second := StartCabrank(t, append([]string{"--listen", first.Addr}, flags...)...)
	second.waitWorkers(2)
	var loads []*load
	for range 20 { // connections: the kernel deals them out
		loads = append(loads, startLoad(t, first.Addr, 1, shortWork))
	}
	for _, l := range loads {
		l.waitAnswered(t, "", 3)
	}
	first.Stop()
	calls := 0
	for _, l := range loads {
		l.waitAnswered(t, "", 3)
		all := l.stop()
		calls += len(all)
		for _, o := range failures(all) {
			t.Errorf("call %s of %d: %v", o.id, len(all), o.err)
		}
	}
	if len(first.taken()) == 0 || len(second.taken()) == 0 {
		t.Errorf("of %d calls the first took %d, the second %d", calls, len(first.taken()), len(second.taken()))
	}
}
