package worker

import (
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

// Whatever chance says, a process lives for 90 to 100 % of what was asked for,
// and at least one call.
func TestLimitsAreDrawn(t *testing.T) {
	r := Recycle{Calls: 1000, Age: 10 * time.Hour, Memory: MemoryLimit{Bytes: 1 << 30}}
	for _, test := range []struct {
		chance float64
		want   limits
	}{
		{0, limits{calls: 1000, age: 10 * time.Hour, memory: 1 << 30, steady: time.Minute}},
		{0.5, limits{calls: 950, age: 9*time.Hour + 30*time.Minute, memory: 1 << 30, steady: time.Minute}},
		{1, limits{calls: 900, age: 9 * time.Hour, memory: 1 << 30, steady: time.Minute}},
	} {
		testkit.Equal(t, r.draw(time.Second, test.chance), test.want, "chance %v", test.chance)
	}
	testkit.Equal(t, r.draw(time.Minute, 0).steady, 10*time.Minute, "from when on memory counts after a boot of a minute")
	testkit.Equal(t, (Recycle{Calls: 1}).draw(0, 1).calls, 1, "a limit of one call became")
	got := (Recycle{}).draw(0, 1)
	testkit.Want(t, got.calls == 0 && got.age == 0 && got.memory == 0, "no limits became %+v", got)
}

func TestRecycleDue(t *testing.T) {
	const never = Reason(255)
	all := limits{calls: 100, age: time.Hour, memory: 1000, steady: time.Minute}
	for _, test := range []struct {
		name   string
		limits limits
		wear   wear
		want   Reason
	}{
		{"no limits", limits{steady: time.Minute}, wear{1 << 40, 1 << 60, 1 << 50}, never},
		{"fresh", all, wear{}, never},
		{"just below", all, wear{99, time.Hour - 1, 999}, never},
		{"calls", all, wear{100, time.Second, 0}, ReasonCalls},
		{"age", all, wear{99, time.Hour, 0}, ReasonAge},
		{"memory", all, wear{99, time.Minute, 1000}, ReasonMemory},
		{"memory unknown", all, wear{99, time.Minute, 0}, never},
		{"memory from the start: no loop", all, wear{99, time.Minute - 1, 1 << 40}, never},
		{"the first reason counts", all, wear{100, time.Hour, 1000}, ReasonCalls},
	} {
		got, due := test.limits.due(test.wear)
		if want := test.want != never; due != want || due && got != test.want {
			t.Errorf("%s: due %v for %v", test.name, due, got)
		}
	}
	testkit.Want(t, all.heavy(wear{memory: 1000}) && !all.heavy(wear{memory: 999}), "a young process over the limit is not seen")
}

func TestRecycleCrowded(t *testing.T) {
	for _, test := range []struct {
		percent     int
		used, limit int64
		want        bool
	}{
		{0, 100, 100, false},
		{90, 89, 100, false},
		{90, 90, 100, true},
		{90, 1 << 40, 0, false},
	} {
		testkit.Equal(t, (Recycle{Memory: MemoryLimit{Percent: test.percent}}).crowded(test.used, test.limit), test.want,
			"%d of %d at %d %%: crowded", test.used, test.limit, test.percent)
	}
}

// A look that began before the last replacement ended does not know what that has
// freed; without one nothing is known.
func TestCrowdIsSeenAfresh(t *testing.T) {
	now, r := time.Now(), Recycle{Memory: MemoryLimit{Percent: 50}}
	full := &weights{at: now, used: 60, limit: 100}
	testkit.Want(t, full.crowd(r, time.Time{}) && full.crowd(r, now.Add(-1)), "a full control group is not seen")
	testkit.Want(t, !full.crowd(r, now) && !full.crowd(r, now.Add(time.Second)) && !(*weights)(nil).crowd(r, time.Time{}),
		"an old look counts")
}

func TestLargest(t *testing.T) {
	one := func(memory int64, age time.Duration) candidate {
		return candidate{limits{steady: time.Minute}, wear{memory: memory, age: age}}
	}
	for _, test := range []struct {
		name string
		of   []candidate
		want int
	}{
		{"nobody", nil, -1},
		{"nothing known", []candidate{one(0, time.Hour)}, -1},
		{"the largest", []candidate{one(5, time.Hour), one(7, time.Hour), one(6, time.Hour)}, 1},
		{"the first of two", []candidate{one(7, time.Hour), one(7, time.Hour)}, 0},
		{"the largest is young: no loop", []candidate{one(7, time.Second), one(6, time.Hour)}, -1},
	} {
		testkit.Equal(t, largest(test.of), test.want, "%s", test.name)
	}
}

// What a place served before the process counts for nothing, and its age is that
// of its readiness.
func TestOdometer(t *testing.T) {
	began := time.Now()
	l := &child{group: 7, began: began, readyAt: began.Add(10 * time.Second), servedBefore: 500}
	o := newOdometer(l)
	c := o.read(Recycle{Calls: 1000}, 520, 77, began.Add(70*time.Second))
	testkit.Want(t, c.wear == (wear{20, time.Minute, 77}) && c.limits.steady == 100*time.Second && o.group == 7, "got %+v", c)
	testkit.Want(t, o.chance >= 0 && o.chance < 1, "chance %v", o.chance)
	// A place that was taken anew counts from zero.
	testkit.Equal(t, o.read(Recycle{}, 3, 0, began).wear.calls, 0, "calls")
}

// Spares that fail put recycling off for ever longer, up to an hour.
func TestRecyclingIsPutOff(t *testing.T) {
	var r recycling
	now := time.Now()
	for _, minutes := range []int{1, 2, 4, 8, 16, 32, 60, 60} {
		want := time.Duration(minutes) * time.Minute
		if r.failed(now); r.pause != want || r.after != now.Add(r.pause) {
			t.Errorf("put off for %v, want %v", r.pause, want)
		}
	}
}
