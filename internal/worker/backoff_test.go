package worker

import (
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

// Waits double from 100 ms to 30 s and spread by a fifth to both sides.
func TestBackOffDoublesToItsMaximum(t *testing.T) {
	var b backOff
	want := []time.Duration{
		100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond, 800 * time.Millisecond,
		1600 * time.Millisecond, 3200 * time.Millisecond, 6400 * time.Millisecond, 12800 * time.Millisecond,
		25600 * time.Millisecond, 30 * time.Second, 30 * time.Second,
	}
	var now time.Duration
	for i, wait := range want {
		low, middle, high := b, b, b
		testkit.Equal(t, low.exited(now, 0, 0), wait*8/10, "exit %d, least", i+1)
		testkit.Equal(t, high.exited(now, 0, 1), wait*12/10, "exit %d, most", i+1)
		testkit.Equal(t, middle.exited(now, 0, 0.5), wait, "exit %d", i+1)
		b = middle
		now += wait
	}
}

// A process of 60 s after readiness makes the past forgotten, a shorter one not.
func TestBackOffForgetsAfterASteadyLife(t *testing.T) {
	var b backOff
	for range 8 {
		b.exited(0, 0, 0.5)
	}
	testkit.Want(t, b.looping, "8 exits at once are no crash loop")
	testkit.Equal(t, b.exited(time.Minute, 60*time.Second-1, 0.5), 25600*time.Millisecond, "after a process just too short")
	testkit.Equal(t, b.exited(3*time.Minute, 60*time.Second, 0.5), 100*time.Millisecond, "after a steady process")
	testkit.Want(t, !b.looping, "still a crash loop after a steady process")
}

// Five exits within 60 s are a crash loop, on the edge too; five in 60 s and a
// bit are not.
func TestCrashLoopNeedsFiveExitsInAMinute(t *testing.T) {
	for _, test := range []struct {
		name  string
		exits []time.Duration
		want  bool
	}{
		{"four at once", []time.Duration{0, 0, 0, 0}, false},
		{"five at once", []time.Duration{0, 0, 0, 0, 0}, true},
		{"five in just 60 s", []time.Duration{7 * time.Second, 20 * time.Second, 40 * time.Second, 60 * time.Second, 67 * time.Second}, true},
		{"five in more", []time.Duration{7 * time.Second, 20 * time.Second, 40 * time.Second, 60 * time.Second, 67*time.Second + 1}, false},
		{"the last five of many", []time.Duration{0, 59 * time.Second, 118 * time.Second, 177 * time.Second, 178 * time.Second, 179 * time.Second, 180 * time.Second}, false},
		{"later", []time.Duration{0, time.Hour, time.Hour, time.Hour, time.Hour, time.Hour}, true},
	} {
		var b backOff
		for _, at := range test.exits {
			b.exited(at, time.Second, 0.5)
		}
		testkit.Want(t, b.looping == test.want, "%s: crash loop %v, want %v", test.name, b.looping, test.want)
	}
}

// Waits of 30 s make exits rare; the crash loop is over only with a steady process.
func TestCrashLoopLastsThroughLongWaits(t *testing.T) {
	var b backOff
	var now time.Duration
	for range 20 {
		now += b.exited(now, 0, 0.5)
	}
	testkit.Want(t, b.looping, "a worker that is never ready left its crash loop")
}
