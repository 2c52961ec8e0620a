package service

import (
	"testing"

	"github.com/cabrank/cabrank/internal/worker"
)

// Nobody is asked for a page that has never been ready: another program may hold the port.
func TestPagesOfStartingProcesses(t *testing.T) {
	m := &scraping{path: "/metrics"}
	for _, state := range worker.States() {
		want := 1
		if state == worker.Starting || state == worker.CrashLoop {
			want = 0
		}
		if got := m.targets([]worker.Status{{Name: "worker-1", PID: 7, State: state}, {State: state}}); len(got) != want {
			t.Errorf("%v: %d pages", state, len(got))
		}
	}
}
