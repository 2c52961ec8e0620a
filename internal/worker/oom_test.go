package worker

import (
	"testing"
	"time"
)

// A kill that the control group has counted just then is the end of one worker, and of no
// other; an old one is nobody's.
func TestOutOfMemoryIsNamed(t *testing.T) {
	now, count, told := time.Unix(0, 0), int64(7), true
	o := &oomWatch{count: func() (int64, bool) { return count, told }}
	pass := func(d time.Duration) {
		now = now.Add(d)
		o.look(now)
	}
	want := func(when string, yes, known bool) {
		t.Helper()
		if oom, sure := o.killed(); oom != yes || sure != known {
			t.Errorf("%s: out of memory %v, known %v", when, oom, sure)
		}
	}
	pass(0)
	want("at the start, of kills before it", false, true)
	count++
	pass(oomEvery / 2)
	want("just counted", true, true)
	want("another worker then, which somebody else has killed", false, true)
	count += 2
	pass(oomEvery) // counted before the end is seen
	want("one of two", true, true)
	want("two of two", true, true)
	want("one more than were counted", false, true)
	count++ // of a process that is none of ours
	pass(oomEvery)
	pass(oomEvery)
	pass(oomEvery)
	want("long after a kill elsewhere", false, true)
	told = false
	want("a group that does not tell", false, false)
}
