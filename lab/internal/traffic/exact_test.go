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
		err = e.Sleep(d)
		testkit.Want(t, err == nil && time.Since(began) >= d, "%v took %v, %v", d, time.Since(began), err)
	}
	testkit.Want(t, e.watched <= 2*watchTime, "watched for %v", e.watched)
}
