//go:build real || soak

package chaos_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cabrank/cabrank/test/real/harness"
)

// chaosWatch looks at cabrank from outside for as long as a run lasts.
//
// Life: watch, stop once. Concurrency: the fields belong to its goroutines until
// stop has returned.
type chaosWatch struct {
	end       context.CancelFunc
	watching  sync.WaitGroup
	most      int // workers' processes that one cabrank had at a time, above those wanted
	readiness harness.Probing
}

// watchEvery is the pause between two looks.
const watchEvery = 50 * time.Millisecond

func (r *chaosRun) watch(t *testing.T) *chaosWatch {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	w := &chaosWatch{end: end}
	w.watching.Go(func() { w.readiness = r.TimedProbe(ctx, watchEvery, 2*time.Second, "readiness") })
	w.watching.Go(func() {
		pause := time.NewTicker(watchEvery)
		defer pause.Stop()
		for ctx.Err() == nil {
			<-pause.C
			w.most = max(w.most, workersOf(r.pid())-int(r.changes.wanted.Load()))
		}
	})
	return w
}

func (w *chaosWatch) stop() {
	w.end()
	w.watching.Wait()
}

// judge holds what was seen against what is promised.
func (w *chaosWatch) judge(v *chaosVerdict) {
	v.t.Helper()
	// What a probe asks in the moment of the end of the watch has no answer.
	statuses := maps.Clone(w.readiness.Statuses)
	if statuses[0] == 1 {
		delete(statuses, 0)
	}
	_, ok := statuses[http.StatusOK]
	v.row("answers of /readiness", "200 only", fmt.Sprint(statuses), ok && len(statuses) == 1)
	v.row("processes of workers above those wanted", fmt.Sprintf("<= max_surge, %d", chaosSurge), fmt.Sprint(w.most), w.most <= chaosSurge)
}

// workersOf counts the children of a process that have CABRANK_WORKER in their
// environment, dead ones that wait for their burial not included.
// Source: proc(5), task/TID/children.
func workersOf(pid int) int {
	count := 0
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // the pattern is well formed
	for _, list := range lists {
		children, _ := os.ReadFile(list) // a thread may end
		for child := range strings.FieldsSeq(string(children)) {
			environ, _ := os.ReadFile("/proc/" + child + "/environ") // a zombie has none
			if slices.ContainsFunc(strings.Split(string(environ), "\x00"), func(v string) bool { return strings.HasPrefix(v, "CABRANK_WORKER=") }) {
				count++
			}
		}
	}
	return count
}
