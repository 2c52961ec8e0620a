//go:build real || soak

package languages_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// Where gruf-relay ran, by its name, its file and its variables and without any
// argument, cabrank does in its place, with the default command of the workers.
func TestInPlaceOfGrufRelay(t *testing.T) {
	port := testkit.FreePorts(t, 120)
	file := fmt.Sprintf("server: {host: 127.0.0.1, port: %d}\nworkers: {count: 2, start_port: %d}\nprobes: {port: %d}\nmetrics: {enabled: false}\n",
		port, port+10, port+1)
	for name, environ := range map[string]string{"gruf-relay.yml": "", "other.yml": "CONFIG_PATH=other.yml"} {
		t.Run(name, func(t *testing.T) {
			dir := harness.ShortTempDir(t)
			write := func(name, text string, mode os.FileMode) {
				t.Helper()
				testkit.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), mode))
			}
			write(name, file, 0o600)
			write("bundle", "#!/bin/sh\necho \"bundle $*\" >&2\nexec "+strings.Join(harness.FaultWorker(t), " ")+"\n", 0o700)
			testkit.Must(t, os.Symlink(harness.CabrankBinary(t), filepath.Join(dir, "gruf-relay")))
			env := []string{"PATH=" + dir + ":" + os.Getenv("PATH"), "CABRANK_CONTROL=off", environ}
			p := harness.StartProcess(t, env, "/bin/sh", "-c", `cd "$0" && exec ./gruf-relay`, dir)
			c := &harness.Cabrank{Process: p, Addr: fmt.Sprintf("127.0.0.1:%d", port), ProbesAddr: fmt.Sprintf("127.0.0.1:%d", port+1), Ended: true}
			c.WaitReady(harness.Patience)
			c.WaitWorkers(2)
			harness.CallIo(t.Context(), harness.Dial(t, c.Addr), "1", 0).WantOK(t)
			if !strings.Contains(p.Output(), "bundle exec gruf --host 127.0.0.1:") {
				t.Errorf("the workers' command is not gruf-relay's:\n%s", p.Output())
			}
			p.StopBy(syscall.SIGTERM)
		})
	}
}
