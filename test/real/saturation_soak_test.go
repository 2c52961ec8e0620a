//go:build soak

package real_test

import (
	"os"
	"testing"
	"time"
)

const (
	// saturatedFor is how long every thread of every worker is kept busy;
	// SOAK_TIME changes it.
	saturatedFor = 10 * time.Minute
	// probeBound is how long a probe may take then. It is asked of all but one in
	// a thousand, which the prober of the test may itself have slept through: the
	// workers leave no processor free.
	probeBound = 50 * time.Millisecond
)

// Ten minutes of calls that compute for 2 s, on workers with one thread whose
// health service therefore waits (Python) or is refused (Ruby), with more
// callers than threads: nobody is taken out, readiness stays, probes are quick
// (R6; gruf#173).
func TestSoakSaturation(t *testing.T) {
	lasts := saturatedFor
	if os.Getenv("SOAK_TIME") != "" {
		lasts = soakTime(t)
	}
	c := StartCabrankEnv(t, langEnv(t), append([]string{"--workers", "2", "--slots", "1", "--min-ready", "2", "--"}, mixedWorkers(t)...)...)
	c.WaitReady(langBound)
	s := saturate(t, c, 4, 2*time.Second, lasts)
	s.wantNobodySick(t, c)
	if slow := s.probes.took[len(s.probes.took)*999/1000]; slow >= probeBound {
		t.Errorf("one probe in a thousand took %v or more, want less than %v", slow, probeBound)
	}
	c.Stop()
}
