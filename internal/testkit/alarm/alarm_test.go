package alarm_test

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/internal/testkit/alarm"
)

// Sleep returns after the time that was asked for, not before.
func TestNotTooEarly(t *testing.T) {
	a := newAlarm(t)
	for _, d := range []time.Duration{-time.Second, 0, 1, 300 * time.Microsecond, 3 * time.Millisecond} {
		began := time.Now()
		testkit.Must(t, a.Sleep(d))
		if took := time.Since(began); took < d {
			t.Errorf("Sleep(%v) took %v", d, took)
		}
	}
}

// While goroutines are always ready to run, Sleep returns nonetheless: within some tens
// of microseconds if the machine is ours, for which this leaves much room.
func TestSleepInABusyProcess(t *testing.T) {
	stop := make(chan struct{})
	ended := make(chan struct{})
	const busy = 8
	for range busy {
		go func() {
			defer func() { ended <- struct{}{} }()
			for {
				select {
				case <-stop:
					return
				default:
					runtime.Gosched()
				}
			}
		}()
	}
	a := newAlarm(t)
	var late []time.Duration
	for range 100 {
		const d = 300 * time.Microsecond
		began := time.Now()
		testkit.Must(t, a.Sleep(d))
		late = append(late, time.Since(began)-d)
	}
	close(stop)
	for range busy {
		<-ended
	}
	slices.Sort(late)
	if late[50] > 200*time.Millisecond {
		t.Errorf("half of the time %v late or more", late[50])
	}
}

func newAlarm(t *testing.T) *alarm.Alarm {
	t.Helper()
	a, err := alarm.New()
	testkit.Must(t, err)
	t.Cleanup(a.Close)
	return a
}
