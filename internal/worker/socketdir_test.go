package worker

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

// shortTemp is a folder whose path leaves room for socket names.
func shortTemp(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "w") //nolint:usetesting // t.TempDir is too long for a socket's path
	testkit.Must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func openSocketDir(t *testing.T, base string) *socketDir {
	t.Helper()
	metrics := testPorts(2)
	metrics.start, metrics.alone = 9100, true
	d := &socketDir{base: base, metrics: metrics}
	testkit.Must(t, d.open())
	t.Cleanup(d.close)
	return d
}

// R19: only this user enters the directory; a stale socket is removed; nothing
// is left after close.
func TestSocketDirLifeCycle(t *testing.T) {
	d := openSocketDir(t, shortTemp(t))
	info, err := os.Stat(d.path)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Fatalf("mode %v, %v; want 0700", info.Mode(), err)
	}
	stale := filepath.Join(d.path, "worker-2.sock")
	testkit.Must(t, os.WriteFile(stale, nil, 0o600))
	at, err := d.claim(1, 1)
	if err != nil || at.address != stale || at.target() != "unix:"+stale || at.metricsPort != 9101 {
		t.Errorf("got %+v, %v", at, err)
	}
	if _, err := os.Stat(stale); !os.IsNotExist(err) {
		t.Errorf("stale socket is still there: %v", err)
	}
	d.close()
	if _, err := os.Stat(d.path); !os.IsNotExist(err) {
		t.Errorf("directory is still there: %v", err)
	}
}

// R20: while the workers of another cabrank have the metrics ports, ours get
// others, and keep them.
func TestSocketDirMetricsPorts(t *testing.T) {
	d := openSocketDir(t, shortTemp(t))
	d.metrics = testPorts(2, 9100, 9101)
	d.metrics.start, d.metrics.alone = 9100, true
	for number, want := range []int{9102, 9103} {
		at, err := d.claim(number, number)
		if err != nil || at.metricsPort != want {
			t.Fatalf("worker %d: %+v, %v; want metrics port %d", number, at, err, want)
		}
		if again, err := d.claim(number, at.index); err != nil || again != at {
			t.Errorf("second process: %+v, %v; want %+v", again, err, at)
		}
	}
}

// R19: a start removes what dead predecessors left, and nothing of the living,
// of beginners, or of others.
func TestSocketDirSweepsTheDeadOnly(t *testing.T) {
	base := shortTemp(t)
	living := openSocketDir(t, base)
	create := func(name string, age time.Duration, lock bool) string {
		path := filepath.Join(base, name)
		testkit.Must(t, os.Mkdir(path, 0o700))
		if lock {
			testkit.Must(t, os.WriteFile(filepath.Join(path, lockName), nil, 0o600))
		}
		when := time.Now().Add(-age)
		testkit.Must(t, os.Chtimes(path, when, when))
		return path
	}
	gone := []string{create("cabrank-dead", 0, true), create("cabrank-old", time.Hour, false)}
	backup := create("cabrank-backup", time.Hour, true) // somebody's own folder
	testkit.Must(t, os.WriteFile(filepath.Join(backup, "notes.txt"), nil, 0o600))
	kept := []string{living.path, backup, create("cabrank-new", 0, false), create("other", time.Hour, true)}
	openSocketDir(t, base)
	for _, path := range gone {
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Errorf("%s is still there: %v", path, err)
		}
	}
	for _, path := range kept {
		if _, err := os.Stat(path); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestRuntimeDirPrefersXDG(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", dir)
	if got := runtimeDir(); got != dir {
		t.Errorf("got %s, want %s", got, dir)
	}
	t.Chdir(dir)
	for _, none := range []string{"", ".", filepath.Join(dir, "missing")} { // a relative one counts as none
		t.Setenv("XDG_RUNTIME_DIR", none)
		if got := runtimeDir(); got != os.TempDir() {
			t.Errorf("%q: got %s, want %s", none, got, os.TempDir())
		}
	}
}

// R19: a path that does not fit into a socket address is refused by name. Who cannot make
// sockets is told what else there is.
func TestSocketDirThatCannotBe(t *testing.T) {
	for base, want := range map[string]string{
		filepath.Join(shortTemp(t), strings.Repeat("x", 80)): "100 are allowed",
		filepath.Join(t.TempDir(), "missing"):                "no such file or directory: set XDG_RUNTIME_DIR or TMPDIR to a folder that may be written, or use transport tcp",
	} {
		err := (&socketDir{base: base}).open()
		if err == nil || !strings.Contains(err.Error(), base) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
