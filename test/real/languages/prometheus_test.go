//go:build real || soak

package languages_test

import (
	"testing"
	"time"

	"github.com/cabrank/cabrank/examples/go/workpb"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// A real Prometheus sees neither a spike nor a fall of the rate while workers with
// hundreds of calls behind each are rolled and killed.
func TestPrometheusSeesNoSpike(t *testing.T) {
	m := startCounted(t, countedWorkers(t, harness.ShortTempDir(t))["ruby"])
	conn := harness.Dial(t, m.Addr)
	if failed := harness.CallCPU(t, conn, 1000, 8); len(failed) > 0 {
		t.Error(failed)
	}
	m.await(1000) // a worker that counted twice, or from zero, would be seen
	server := harness.StartPrometheus(t, m.MetricsAddr)
	done := make(chan error, 1)
	go func() {
		err := m.operator.Run(harness.ChangeLimit, "restart")
		if err == nil {
			err = m.kill()
		}
		done <- err
	}()
	const perSecond = 50
	client, calls, over := workpb.NewWorkClient(conn), 0, false
	began, pace := time.Now(), time.NewTicker(time.Second/perSecond)
	defer pace.Stop()
	for !over || time.Since(began) < 5*time.Second {
		<-pace.C
		calls++
		// The worker that is killed may take a call with it.
		if err := harness.CallCPUOnce(t.Context(), client); err != nil {
			t.Log(err)
		}
		select {
		case err := <-done:
			over = true
			testkit.Must(t, err)
		default:
		}
	}
	// In the first window the calls begin.
	rates := server.Values(t, "sum(rate("+m.counted.calls+"[2s]))", began.Add(3*time.Second), time.Now())
	if len(rates) < 10 {
		t.Fatalf("%d rates", len(rates))
	}
	for _, rate := range rates {
		if rate < 0 || rate > 4*perSecond { // a worker that counted twice makes it more
			t.Errorf("a rate of %v calls per second, where there are %v: %v", rate, float64(calls)/time.Since(began).Seconds(), rates)
			break
		}
	}
	resets := server.Values(t, "sum(resets("+m.counted.calls+"[5m])) + sum(resets("+m.counted.seconds+"_count[5m]))", time.Now(), time.Now())
	if len(resets) != 1 || resets[0] != 0 {
		t.Errorf("resets: %v", resets)
	}
	t.Logf("%d calls, rates %.0f", calls, rates)
	m.Stop()
}
