//go:build real

package real_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// server.reuse_port: two on one port; one stops, and callers that never pause
// see nothing of it, neither those that stay nor those that connect anew for every
// call (R17).
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
	fresh := startFresh(t, first.Addr, 8)
	fresh.waitAnswered(t, "", 20)
	first.Stop()
	fresh.waitAnswered(t, "", 20)
	loads = append(loads, fresh)
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

// startFresh begins to call over a connection for every call.
func startFresh(t *testing.T, addr string, callers int) *load {
	t.Helper()
	l := &load{quit: make(chan struct{})}
	for caller := range callers {
		l.callers.Go(func() {
			for call := 0; ; call++ {
				select {
				case <-l.quit:
					return
				default:
				}
				l.note(callAnew(t, addr, fmt.Sprintf("fresh-%d-%d", caller, call)))
			}
		})
	}
	return l
}

func callAnew(t *testing.T, addr, id string) outcome {
	t.Helper()
	conn, err := grpc.NewClient(addr, grpc.WithNoProxy(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return outcome{id: id, err: err}
	}
	defer conn.Close()
	limited, cancel := context.WithTimeout(t.Context(), callBound)
	defer cancel()
	return callIo(limited, conn, id, 0)
}
