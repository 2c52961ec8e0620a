//go:build soak

package accesslog

import (
	"encoding/json"
	"log/slog"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/testkit"
)

// A disk that becomes full and has room again: all but the one line that it has cut can
// be read, and those that are missing are counted.
func TestFullDisk(t *testing.T) {
	folder := t.TempDir()
	if err := syscall.Mount("none", folder, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("no disk of its own: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(folder, 0) })
	path := filepath.Join(folder, "calls.log")
	f, err := Open(path, slog.New(slog.DiscardHandler))
	testkit.Must(t, err)
	defer f.Close()
	l := New(Choice{Share: 1}, f)
	for range 600 {
		l.Call(call(grpcwire.OK, time.Second))
	}
	testkit.Eventually(t, 30*time.Second, "lost lines", func() bool { return l.Dropped() > 0 })
	testkit.Must(t, syscall.Mount("none", folder, "tmpfs", syscall.MS_REMOUNT, "size=256k"))
	for range 3 {
		l.Call(call(grpcwire.OK, time.Second))
	}
	l.Close()
	text := testkit.ReadFile(t, path)
	whole, cut := 0, 0
	for line := range strings.Lines(string(text)) {
		if json.Valid([]byte(line)) {
			whole++
		} else {
			cut++
		}
	}
	testkit.Want(t, cut <= 1 && uint64(whole)+l.Dropped() == 603,
		"%d lines can be read, %d cannot, %d are counted as dropped, of 603", whole, cut, l.Dropped())
}
