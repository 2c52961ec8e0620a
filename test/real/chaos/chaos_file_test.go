//go:build real || soak

package chaos_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

// chaosFile is the configuration of a run. It belongs to one goroutine.
type chaosFile struct {
	path string
	base string // what never changes
}

// chaosConfig is what holds for all of a run; vary adds what changes.
const chaosConfig = `
workers: {count: %d, slots: %d, %s, min_ready: 2, max_surge: %d}
drain_timeout: %s
recycle: {calls: %d}
methods:
  /cabrank.example.v1.Work/Cpu: {idempotent: true, retries: 2}
  /cabrank.example.v1.Work/Count: {idempotent: true, retries: 2}
`

func newChaosFile(t *testing.T, dir string, plan *chaosPlan, more string) *chaosFile {
	t.Helper()
	f := &chaosFile{path: filepath.Join(dir, "cabrank.yml")}
	transport := "transport: unix"
	if plan.tcp {
		transport = fmt.Sprintf("start_port: %d", testkit.FreePorts(t, 4*chaosWorkers)) // two cabranks, spares, scales
	}
	f.base = fmt.Sprintf(chaosConfig, chaosWorkers, chaosSlots, transport, chaosSurge, chaosDrain, plan.recycle) + more
	testkit.Must(t, f.write(f.base))
	return f
}

func (f *chaosFile) write(text string) error { return os.WriteFile(f.path, []byte(text), 0o600) }

// vary changes settings that no call of the run may notice.
func (f *chaosFile) vary(random *rand.Rand) error {
	return f.write(f.base + fmt.Sprintf(`
queue: {length: %d, timeout: %ds}
stall_timeout: %ds
lanes:
  chat: {methods: [/cabrank.example.v1.Work/Chat], priority: %d}
limits: {calls: %d}
explain: %t
`, 500+random.IntN(1000), 20+random.IntN(20), 60+random.IntN(60),
		random.IntN(3), 1000+random.IntN(1000), random.IntN(2) == 0))
}

// spoil makes the file bad and returns what it was.
func (f *chaosFile) spoil() (good string, err error) {
	text, err := os.ReadFile(f.path)
	if err != nil {
		return "", err
	}
	return string(text), f.write(string(text) + "\nworkers_count: -1\n")
}
