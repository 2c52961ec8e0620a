package traffic

import (
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/internal/testkit/alarm"
)

// It never returns early, and looks at the clock for the end of the wait only.
func TestExact(t *testing.T) {
	timer, err := alarm.New()
	testkit.Must(t, err)
	defer timer.Close()
	e := &exact{Alarm: timer}
	for _, d := range []time.Duration{0, watchTime / 2, 3 * time.Millisecond} {
		began := time.Now()
		if err := e.Sleep(d); err != nil || time.Since(began) < d {
			t.Errorf("%v took %v, %v", d, time.Since(began), err)
		}
	}
	if e.watched > 2*watchTime {
		t.Errorf("watched for %v", e.watched)
	}
}
