package service

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/cabrank/cabrank/internal/cgroup"
	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/relay"
	"github.com/cabrank/cabrank/internal/scale"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/internal/worker"
)

// scene is a fleet whose workers are ready at once, and the traffic on it.
type scene struct {
	wanted int
	state  worker.State // of all workers
	refuse error        // of Scale
	load   relay.Load
	now    time.Time
	rate   float64
	log    strings.Builder
}

func (s *scene) Scale(n int) error {
	if s.refuse == nil {
		s.wanted = n
	}
	return s.refuse
}

func (s *scene) Wanted() int { return s.wanted }

func (s *scene) Workers() []worker.Status {
	var all []worker.Status
	for i := range s.wanted {
		all = append(all, worker.Status{
			Name: fmt.Sprintf("worker-%d", i+1), State: s.state, PID: 100 + i, Started: s.now.Add(-time.Minute), Since: s.now.Add(-58 * time.Second),
		})
	}
	return all
}

func (s *scene) Load() relay.Load { return s.load }

func (s *scene) Rank() rank.Snapshot {
	var snapshot rank.Snapshot
	for i := range s.wanted {
		snapshot.Endpoints = append(snapshot.Endpoints, rank.EndpointState{Name: fmt.Sprintf("worker-%d", i+1), Limit: 1, Ready: true})
	}
	return snapshot
}

// pass lets so much time pass under the rate of calls, of 0.1 s each.
func (s *scene) pass(a *autoscale, d time.Duration) {
	for end := s.now.Add(d); s.now.Before(end); {
		s.now = s.now.Add(scaleEvery)
		calls := s.rate * scaleEvery.Seconds()
		s.load.Arrived += uint64(calls)
		s.load.Ended += uint64(calls)
		s.load.SlotTime += time.Duration(calls * 0.1 * float64(time.Second))
		a.look(s.now)
	}
}

func newScene(w worker.Settings) (*scene, *autoscale) {
	s := &scene{wanted: w.Count.N, state: worker.Ready, now: time.Now()}
	a := newAutoscale(w, s, s, fstest.MapFS{}, slog.New(slog.NewTextHandler(&s.log, nil)))
	a.began = s.now
	return s, a
}

func auto(least, most int) worker.Settings {
	return worker.Settings{Count: worker.Amount{N: least, Min: least, Max: most}, Slots: worker.Amount{N: 1}}
}

func TestAutoscaleFollowsTheLoad(t *testing.T) {
	s, a := newScene(auto(1, 20))
	s.rate = 40
	s.pass(a, time.Minute)
	testkit.Want(t, s.wanted == 7, "%d workers for a load of 4 slots, want 7", s.wanted)
	testkit.Want(t, strings.Contains(s.log.String(), "worker count changed") && strings.Contains(s.log.String(), "keep"),
		"the log does not tell why: %s", &s.log)
	if sample := a.sample(); sample.Wanted != 7 || !sample.Adapts || sample.Load < 3.9 || sample.Decisions["rise"] == 0 {
		t.Errorf("the metrics tell %+v", sample)
	}
	s.rate = 0
	s.pass(a, 20*time.Minute)
	testkit.Want(t, s.wanted == 1, "%d workers for no load", s.wanted)
}

// A number asked for by hand stays, until somebody asks for auto again.
func TestAutoscaleHolds(t *testing.T) {
	s, a := newScene(auto(1, 20))
	s.rate = 40
	s.pass(a, time.Minute)
	testkit.Must(t, a.Hold(2))
	s.pass(a, time.Minute)
	if state := a.State(); s.wanted != 2 || !state.Held || state.Max != 20 {
		t.Errorf("%d workers after scale 2, state %+v", s.wanted, state)
	}
	if err := a.Hold(30); err != nil { // beyond the bounds: who asks knows
		t.Fatal(err)
	}
	s.pass(a, time.Minute)
	testkit.Want(t, s.wanted == 30, "%d workers after scale 30", s.wanted)
	testkit.Want(t, a.Follow(), "scale auto was refused")
	s.pass(a, time.Second)
	if state := a.State(); s.wanted != 20 || state.Held {
		t.Errorf("%d workers after scale auto, want the most that may run; state %+v", s.wanted, state)
	}
	s.refuse = errors.New("not now")
	testkit.Want(t, a.Hold(3) != nil, "the error of the fleet was lost")
}

func TestAutoscaleIsSwitched(t *testing.T) {
	s, a := newScene(worker.Settings{Count: worker.Amount{N: 3}, Slots: worker.Amount{N: 1}})
	s.rate = 100
	s.pass(a, time.Minute)
	testkit.Want(t, s.wanted == 3 && a.State() == nil && !a.Follow() && !a.sample().Adapts,
		"%d workers and state %v although the number is fixed", s.wanted, a.State())
	err := a.Hold(4)
	testkit.Want(t, err == nil && s.wanted == 4, "%d workers after scale 4: %v", s.wanted, err)
	a.configure(auto(2, 9))
	s.pass(a, 30*time.Second)
	testkit.Want(t, s.wanted == 9, "%d workers for a load of 10 slots, want the most that may run", s.wanted)
	a.configure(auto(2, 6))
	s.pass(a, time.Second)
	testkit.Want(t, s.wanted == 6, "%d workers after the most were lowered to 6", s.wanted)
	a.configure(worker.Settings{Count: worker.Amount{N: 6}, Slots: worker.Amount{N: 1}})
	s.rate = 0
	s.pass(a, time.Hour)
	testkit.Want(t, s.wanted == 6, "%d workers after the number was fixed at 6", s.wanted)
}

// The log says once that more would be needed, and why there are not more.
func TestAutoscaleTellsItsLimit(t *testing.T) {
	s, a := newScene(auto(2, 2))
	s.rate = 100
	s.pass(a, 5*time.Minute)
	testkit.Equal(t, strings.Count(s.log.String(), "more workers are needed"), 1, "times told, in\n%s", &s.log)
	state := a.State()
	testkit.Want(t, strings.Contains(state.Reason, "maximum"), "the status gives %q as the reason", state.Reason)
}

// A version that dies at every start is no reason for more of it.
func TestAutoscaleDoesNotFeedACrashLoop(t *testing.T) {
	s, a := newScene(auto(4, 50))
	s.rate = 4
	s.pass(a, time.Minute)
	s.state, s.rate = worker.CrashLoop, 400
	s.load.Waiting, s.load.Oldest = 1000, time.Minute
	s.pass(a, time.Minute)
	testkit.Want(t, s.wanted == 4, "%d workers while all of them are in a crash loop", s.wanted)
}

// What others run has slots as well, and a worker that is stopped has none.
func TestCountEndpoints(t *testing.T) {
	workers := []worker.Status{
		{Name: "worker-1", State: worker.Ready},
		{Name: "worker-2", State: worker.Suspect},
		{Name: "worker-3", State: worker.Starting},
		{Name: "worker-4", State: worker.Stopped},
		{Name: "worker-5", State: worker.Draining},
		{Name: "worker-6", State: worker.Vacant},
	}
	endpoints := []rank.EndpointState{{Name: "10.0.0.1:1", Limit: 100, Ready: true}, {Name: "10.0.0.2:1", Limit: 1000}}
	for _, w := range workers {
		endpoints = append(endpoints, rank.EndpointState{Name: w.Name, Limit: 5, Ready: true})
	}
	var s scale.Sample
	countEndpoints(&s, workers, endpoints)
	testkit.Want(t, s.Ready == 2 && s.Booting == 1 && s.Slots == 10 && s.Others == 100,
		"got %d ready with %d slots, %d booting, %d slots of others", s.Ready, s.Slots, s.Booting, s.Others)
}

func TestBoots(t *testing.T) {
	b := newBoots()
	start := time.Now()
	status := func(state worker.State, exits int, started time.Time, boot time.Duration) []worker.Status {
		return []worker.Status{{Name: "worker-1", State: state, Started: started, Since: started.Add(boot), Restarts: map[worker.Cause]int{worker.CauseExit: exits}}}
	}
	b.look(status(worker.Starting, 0, start, 0))
	testkit.Equal(t, b.usual(), 0, "before any worker was ready, starting takes")
	for range 3 { // seen again, it counts once
		b.look(status(worker.Ready, 0, start, 3*time.Second))
	}
	for i := range bootsKept {
		b.look(status(worker.Ready, i, start.Add(time.Duration(i+1)*time.Minute), time.Second))
	}
	testkit.Equal(t, b.usual(), time.Second, "what starting takes, of the last few")
	exits := bootsKept - 1
	testkit.Equal(t, b.failing(status(worker.Starting, exits+1, start, 0)), 0, "one end is no failure")
	testkit.Equal(t, b.failing(status(worker.BackOff, exits+2, start, 0)), 1, "two ends in a row are a failure")
	testkit.Equal(t, b.failing(status(worker.CrashLoop, exits, start, 0)), 1, "a crash loop is a failure")
}

func TestMachine(t *testing.T) {
	stat := func(group, ticks string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte("1 (ruby) S 1 " + group + " 0 0 -1 0 0 0 0 0 " + ticks + " 0 0 0 20 0 1 0 5\n")}
	}
	root := fstest.MapFS{
		"proc/100/stat":         stat("100", "500"),
		"proc/100/status":       {Data: []byte("VmRSS:\t  300 kB\n")},
		"proc/101/stat":         stat("101", "100"),
		"proc/101/status":       {Data: []byte("VmRSS:\t  500 kB\n")},
		"proc/meminfo":          {Data: []byte("MemTotal: 9000 kB\nMemAvailable: 8000 kB\n")},
		"proc/self/cgroup":      {Data: []byte("0::/\n")},
		"proc/self/mountinfo":   {Data: []byte("30 23 0:26 / /cg rw - cgroup2 cgroup2 rw\n")},
		"cg/cpu.max":            {Data: []byte("50000 100000\n")},
		"cg/memory.max":         {Data: []byte("2048000\n")},
		"cg/memory.current":     {Data: []byte("1024000\n")},
		"proc/self/unimportant": {},
	}
	m := newMachine(root)
	now := time.Now()
	workers := (&scene{wanted: 2, state: worker.Ready, now: now}).Workers()
	m.look(now, workers)
	root["proc/100/stat"] = stat("100", "700")
	delete(root, "proc/101/stat")
	m.look(now.Add(cpuEvery), workers)
	var s scale.Sample
	m.tell(&s)
	testkit.Want(t, s.CPU == 2*time.Second, "since they are ready workers have used %v of CPU, want 2s", s.CPU)
	testkit.Want(t, s.CPUs <= 0.5 && s.CPUs > 0, "%v CPUs, want half of one less what this process uses", s.CPUs)
	if s.MemoryEach != 500<<10 || s.MemoryLimit != 2048000 || s.MemoryUsed != 1024000 {
		t.Errorf("memory %d of %d, %d each", s.MemoryUsed, s.MemoryLimit, s.MemoryEach)
	}
	testkit.Want(t, m.groups != nil && m.memory.Free() != (cgroup.Memory{}).Free(), "nothing is left of the memory")
}

// Who looks never waits for a change of the number of workers, which can take long, and sees
// what was measured before.
func TestMeasureDoesNotWait(t *testing.T) {
	s, a := newScene(auto(1, 20))
	a.acting.Lock()
	m := a.measure(s.now)
	testkit.Want(t, m == nil, "measured before anything was: %+v", m)
	a.acting.Unlock()
	before := a.measure(s.now)
	a.acting.Lock()
	defer a.acting.Unlock()
	testkit.Equal(t, a.measure(s.now.Add(time.Second)), before, "measured")
}
