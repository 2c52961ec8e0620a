//go:build soak

package workers_test

import (
	"os"
	"testing"
	"time"

	"github.com/cabrank/cabrank/test/real/harness"
)

const (
	// saturatedFor is how long every thread of every worker is kept busy;
	// SOAK_TIME changes it.
	saturatedFor = 10 * time.Minute
	// probeBound is how long a probe may take then. It is asked of 99 in a hundred:
	// the workers leave no processor free, and whatever else the machine does keeps
	// the prober of the test waiting, too.
	probeBound = 50 * time.Millisecond
	// kubeletBound is for all of them: the default timeoutSeconds of Kubernetes.
	kubeletBound = time.Second
)

// Ten minutes of calls that compute for 2 s, on workers with one thread whose
// health service therefore waits (Python) or is refused (Ruby), with more
// callers than threads: nobody is taken out, readiness stays, probes are quick
// (R6; gruf#173).
func TestSoakSaturation(t *testing.T) {
	lasts := saturatedFor
	if os.Getenv("SOAK_TIME") != "" {
		lasts = harness.SoakTime(t)
	}
	c := harness.StartCabrankEnv(t, harness.LangEnv(t), append([]string{"--workers", "2", "--slots", "1", "--min-ready", "2", "--"}, mixedWorkers(t)...)...)
	c.WaitReady(harness.LangBound)
	s := saturate(t, c, 4, 2*time.Second, lasts)
	s.wantNobodySick(t, c)
	took := s.probes.Took
	if p99, most := took[len(took)*99/100], took[len(took)-1]; p99 >= probeBound || most >= kubeletBound {
		t.Errorf("99 %% of the probes took less than %v, all less than %v; want %v, %v", p99, most, probeBound, kubeletBound)
	}
}

// R6: workers with one thread, busy with calls that take longer than their
// health checks and than hang_timeout, are busy and not sick.
func TestSaturationIsNotSickness(t *testing.T) {
	args := []string{"--workers", "2", "--slots", "1", "--min-ready", "2", "--transport", "unix", "--"}
	// With 1 s a machine that runs other things, too, has workers stand still for long enough.
	env := append(impatient(t), "CABRANK_HANG_TIMEOUT=2s")
	c := harness.StartCabrankEnv(t, env, append(args, mixedWorkers(t)...)...)
	c.WaitReady(harness.LangBound)
	saturate(t, c, 4, 2500*time.Millisecond, 9*time.Second).wantNobodySick(t, c)
}
