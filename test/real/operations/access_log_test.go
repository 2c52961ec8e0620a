//go:build real || soak

package operations_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/grpc/metadata"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// Each call is a line, in a file that is rotated while calls come; no value of metadata
// is in it.
func TestAccessLog(t *testing.T) {
	dir := t.TempDir()
	path, file := filepath.Join(dir, "calls.log"), filepath.Join(dir, "cabrank.yml")
	testkit.Must(t, os.WriteFile(file, []byte("access_log: "+path+"\n"), 0o600))
	c := harness.StartFault(t, harness.FaultWorker(t), "--config", file, "--workers", "1", "--slots", "1").Booted(1)
	conn := harness.Dial(t, c.Addr)
	call := func() {
		t.Helper()
		ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer sesame")
		harness.CallIo(ctx, conn, "1", 0).WantOK(t)
	}
	has := func(path string, lines int) string {
		t.Helper()
		var text []byte
		testkit.Eventually(t, harness.Patience, "lines in "+path, func() bool {
			text, _ = os.ReadFile(path)
			return strings.Count(string(text), "\n") == lines
		})
		return string(text)
	}
	for range 3 {
		call()
	}
	text := has(path, 3)
	var line struct {
		Method   string `json:"method"`
		Code     string `json:"code"`
		Worker   string `json:"worker"`
		Caller   string `json:"caller"`
		Door     string `json:"door"`
		BytesOut int    `json:"bytes_out"`
	}
	first, _, _ := strings.Cut(text, "\n")
	testkit.Must(t, json.Unmarshal([]byte(first), &line))
	if line.Method != "/cabrank.example.v1.Work/Io" || line.Code != "OK" || line.Worker != "worker-1" || line.Caller != "127.0.0.1" || line.Door != "grpc" || line.BytesOut == 0 {
		t.Errorf("line is %s", first)
	}
	testkit.Want(t, !strings.Contains(text, "sesame"), "a value of metadata is in the log")
	testkit.Must(t, os.Rename(path, path+".1"))
	c.Signal(syscall.SIGUSR1)
	testkit.Eventually(t, harness.Patience, "a new file", func() bool {
		call()
		info, err := os.Stat(path)
		return err == nil && info.Size() > 0
	})
}
