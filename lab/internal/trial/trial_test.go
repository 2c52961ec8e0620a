package trial

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/lab/internal/agent"
	"github.com/cabrank/cabrank/lab/internal/result"
	"github.com/cabrank/cabrank/lab/internal/scenario"
	"github.com/cabrank/cabrank/lab/internal/traffic"
)

// A generator is this program with one word.
func TestMain(m *testing.M) {
	if len(os.Args) != 2 || os.Args[1] != "agent" {
		testkit.VerifyMain(m)
		return
	}
	if err := agent.Serve(context.Background(), os.Stdin, os.Stdout); err != nil {
		panic(err)
	}
}

const text = `
name: made-up
about: a
question: b
rounds: 3
arms:
  - {name: quick}
  - {name: lame, optional: true, workers: {max_age: 1m}}
every_load: {duration: 2s, warmup: 1s}
loads:
  - rate: 100
  - callers: 5
    arms: [quick]
    events:
      - {at: 1s, do: stop, for: 500ms}
      - {at: 500ms, do: burst, for: 1s, more: 10}
primary: {figure: p50, load: 100/s, base: quick, other: lame}
`

func parsed(t *testing.T, text string) *scenario.Scenario {
	t.Helper()
	s, err := scenario.Parse("x.yml", []byte(text), nil)
	testkit.Must(t, err)
	return s
}

// world stands in for processes: its calls take a while, in virtual time.
type world struct {
	mu      sync.Mutex
	log     []string
	takes   time.Duration
	refuses map[string]error // arms that cannot be started
	fails   error            // of generators
	stands  int              // that are open
}

func (w *world) say(format string, a ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = append(w.log, fmt.Sprintf(format, a...))
}

func (w *world) options(t *testing.T, s *scenario.Scenario) Options {
	t.Helper()
	return Options{
		Scenario: s, Folder: filepath.Join(t.TempDir(), "a", "b"), Version: "v", Agent: []string{"agent"},
		Start: w.start, Hire: w.hire,
	}
}

func (w *world) start(_ context.Context, a *scenario.Arm, l *scenario.Load) (Stand, error) {
	if err := w.refuses[a.Name]; err != nil {
		return nil, err
	}
	w.say("%s at %s", a.Name, l.Name)
	w.stands++
	return &fakeStand{world: w, began: time.Now()}, nil
}

type fakeStand struct {
	*world

	began time.Time
}

func (s *fakeStand) Target() string                   { return "target" }
func (s *fakeStand) Caller(command []string) []string { return append([]string{"in"}, command...) }
func (s *fakeStand) Notes() []string                  { return []string{"No quotas here."} }
func (s *fakeStand) Close()                           { s.stands-- }

// Usage is half a core since the start.
func (s *fakeStand) Usage() []result.Process {
	return []result.Process{{Role: "worker 1", PID: 7, CPU: time.Since(s.began) / 2, RSS: 1000}}
}

func (s *fakeStand) Do(_ context.Context, e scenario.Event) (string, error) {
	<-time.After(e.For)
	return e.String(), errors.New("it was too late")
}

// hire makes a generator that runs in this process.
func (w *world) hire(command []string, job agent.Job) (Generator, error) {
	w.say("%s, part %d of %d", strings.Join(command, " "), job.Plan.Part+1, job.Plan.Parts)
	return &fakeGenerator{world: w, job: job, end: make(chan struct{})}, nil
}

type fakeGenerator struct {
	*world

	job  agent.Job
	at   time.Time
	once sync.Once
	end  chan struct{}
}

func (g *fakeGenerator) PID() int               { return 8 }
func (g *fakeGenerator) Ready() (string, error) { return "made up", nil }
func (g *fakeGenerator) Begin(at time.Time)     { g.at = at }
func (g *fakeGenerator) Stop()                  { g.once.Do(func() { close(g.end) }) }
func (g *fakeGenerator) Close()                 {}

func (g *fakeGenerator) Wait() (*agent.Answer, error) {
	if g.fails != nil {
		return nil, g.fails
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	<-time.After(time.Until(g.at))
	// A closed loop: an open one waits with a timer of the machine.
	plan := g.job.Plan
	if plan.Open() {
		plan.Rate, plan.Callers = nil, traffic.Profile{{Length: plan.Duration(), From: 2, To: 2}}
	}
	over := make(chan struct{})
	defer close(over)
	go func() {
		select {
		case <-g.end:
			cancel()
		case <-over:
		}
	}()
	record, err := traffic.New(plan, g).Run(ctx)
	return &agent.Answer{Record: record, CPU: time.Second, Took: 4 * time.Second, Cores: 2, PeakRSS: 5}, err
}

func (g *fakeGenerator) Call(context.Context, traffic.Call) traffic.Answer {
	<-time.After(g.takes)
	return traffic.Answer{Worker: "worker-1"}
}

// run runs in virtual time.
func run(t *testing.T, w *world, change func(*Options)) (done *result.Run, folder string, err error) {
	t.Helper()
	o := w.options(t, parsed(t, text))
	if change != nil {
		change(&o)
	}
	synctest.Test(t, func(t *testing.T) {
		done, err = Run(t.Context(), o)
		testkit.Want(t, w.stands == 0, "%d arms still run", w.stands)
	})
	return done, o.Folder, err
}

func TestRun(t *testing.T) {
	w := &world{takes: 10 * time.Millisecond}
	var told []Progress
	done, folder, err := run(t, w, func(o *Options) {
		o.Scenario.Loads[1].Processes = 3
		o.Tell = func(p Progress) { told = append(told, p) }
		o.Noise = func() func() float64 { return func() float64 { return 0.5 } }
	})
	testkit.Must(t, err)
	testkit.Want(t, len(done.Blocks) == 9 && !done.Cut && done.Version == "v" && len(done.Notes) == 3 && len(done.LeftOut) == 0,
		"%d blocks, cut %v, notes %v, left out %v", len(done.Blocks), done.Cut, done.Notes, done.LeftOut)
	read, err := result.Read(folder)
	testkit.Need(t, err == nil && len(read.Blocks) == 9, "%v", err)
	seeds := map[string]uint64{}
	for i := range read.Blocks {
		b := &read.Blocks[i]
		key := fmt.Sprint(b.Load, b.Round)
		other, known := seeds[key]
		testkit.Want(t, !known || other == b.Seed, "arms of a round have other seeds: %+v", b)
		seeds[key] = b.Seed
		record, err := result.ReadRecord(folder, b)
		testkit.Want(t, err == nil && record.Due != 0 && b.Workers["worker-1"] != 0 && b.Noise == 0.5 && !b.Judged(), "%+v, %v", b, err)
		checkProcesses(t, b)
	}
	testkit.Want(t, slices.Contains(w.log, "in agent, part 3 of 3") && slices.Contains(w.log, "in agent, part 1 of 1"), "%q", w.log)
	checkTold(t, told)
}

func checkProcesses(t *testing.T, b *result.Block) {
	t.Helper()
	worker := b.Processes[len(b.Processes)-1]
	if worker.Role != "worker 1" || worker.CPU < time.Second || worker.CPU > 2*time.Second || b.Processes[0].Role != "generator 1" {
		t.Errorf("%+v", b.Processes)
	}
	if b.Load != "5 callers" {
		return
	}
	// The burst is told, and the stop with what went wrong.
	if len(b.Processes) != 4 || len(b.Events) != 2 || b.Events[0].Did != "burst of 10 more for 1s" || b.Events[1].Did != "worker-1 stopped for 500ms" ||
		b.Events[1].At != time.Second || b.Events[1].Took != 500*time.Millisecond || b.Events[1].Err != "it was too late" {
		t.Errorf("%+v", b.Events)
	}
}

func checkTold(t *testing.T, told []Progress) {
	t.Helper()
	first, last := told[0], told[len(told)-1]
	testkit.Want(t, first.Block == 1 && first.Blocks == 9 && first.Left >= 27*time.Second && last.Done != nil && last.Left == 0,
		"first %+v, last %+v", first, last)
	testkit.Want(t, len(told) == 18 && told[1].Done != nil && told[2].Done == nil,
		"told %d times, want at the beginning and at the end of each block", len(told))
}

// A second run with the same seed has the same blocks in the same order.
func TestOrder(t *testing.T) {
	var orders [2][]string
	for i := range orders {
		w := &world{takes: time.Second}
		_, _, err := run(t, w, nil)
		testkit.Must(t, err)
		orders[i] = w.log
	}
	testkit.Want(t, slices.Equal(orders[0], orders[1]), "%q\n%q", orders[0], orders[1])
}

// What cannot be started is left out, if it may be; else the run ends, and says why.
func TestMissing(t *testing.T) {
	missing := errors.New("it is not installed")
	done, _, err := run(t, &world{takes: time.Second, refuses: map[string]error{"lame": missing}}, nil)
	if err != nil || len(done.Blocks) != 6 || done.Cut || len(done.LeftOut) != 1 || done.LeftOut[0] != "lame: it is not installed." {
		t.Errorf("%+v, %v", done, err)
	}
	done, folder, err := run(t, &world{takes: time.Second, refuses: map[string]error{"quick": missing, "lame": missing}}, nil)
	testkit.Want(t, done == nil && errors.Is(err, missing), "%+v, %v", done, err)
	_, err = os.Stat(filepath.Dir(folder))
	testkit.Want(t, errors.Is(err, os.ErrNotExist), "%s was left: %v", folder, err)
	done, _, err = run(t, &world{takes: time.Second}, func(o *Options) {
		o.Limits.Files = 1
	})
	if done != nil || err == nil || !strings.Contains(err.Error(), "nothing can be measured here: quick at 100/s, lame at 100/s, quick at 5 callers: 0 connections need 100 open files") {
		t.Errorf("%+v, %v", done, err)
	}
}

// A generator that fails ends the run; what was measured is kept.
func TestFailure(t *testing.T) {
	w := &world{takes: time.Second}
	done, folder, err := run(t, w, func(o *Options) {
		o.Tell = func(p Progress) {
			if p.Block == 2 {
				w.fails = errors.New("no memory")
			}
		}
	})
	testkit.Need(t, err != nil && strings.Contains(err.Error(), "no memory") && len(done.Blocks) == 1 && done.Cut, "%+v, %v", done, err)
	read, err := result.Read(folder)
	testkit.Want(t, err == nil && read.Cut && strings.Contains(strings.Join(read.Notes, " "), "no memory"), "%+v, %v", read, err)
}

// Who ends a run has what was measured, the block under way included.
func TestCut(t *testing.T) {
	w := &world{takes: 100 * time.Millisecond}
	o := w.options(t, parsed(t, text))
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 4500*time.Millisecond)
		defer cancel()
		done, err := Run(ctx, o)
		if err != nil || len(done.Blocks) != 2 || !done.Cut || done.Blocks[0].Marks != nil || done.Blocks[1].Marks[0] != "ended early" {
			t.Errorf("%+v, %v", done, err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		o.Folder = filepath.Join(t.TempDir(), "x")
		if done, err := Run(ctx, o); done != nil || err == nil {
			t.Errorf("%+v, %v", done, err)
		}
		_, err := os.Stat(o.Folder)
		testkit.Want(t, err != nil, "the folder was left")
	})
}

// A run that is kept goes on where rounds are marked or missing, with the blocks that a
// longer run would have had; what is in it stays.
func TestAppend(t *testing.T) {
	marked := 3
	noise := func(o *Options) {
		blocks := 0
		o.Noise = func() func() float64 {
			blocks++
			here := blocks
			return func() float64 { return map[bool]float64{true: 0.5}[here == marked] }
		}
	}
	kept, folder, err := run(t, &world{takes: 10 * time.Millisecond}, noise)
	testkit.Need(t, err == nil && len(kept.Blocks) == 9, "%v", err)
	lost := kept.Blocks[marked-1]
	kept.Blocks = kept.Blocks[:8] // as if Ctrl-C had ended it before the last
	kept.Cut = true
	again := func(change func(*Options)) (*result.Run, error) {
		done, _, err := run(t, &world{takes: 10 * time.Millisecond}, func(o *Options) {
			o.Folder, o.Kept = folder, kept
			if change != nil {
				change(o)
			}
		})
		return done, err
	}
	done, err := again(nil)
	if err != nil || done.Cut || done.Blocks[marked-1].Raw != lost.Raw || done.Planned != len(done.Blocks) || len(done.Blocks) <= 9 {
		t.Fatalf("%+v, %v", done, err)
	}
	for i := range done.Loads {
		rounds := map[int]int{}
		for _, b := range done.Blocks {
			if b.Load == done.Loads[i].Name && b.Judged() {
				rounds[b.Round]++
			}
		}
		whole := 0
		for _, n := range rounds {
			if n == 2-i { // the second load has one arm
				whole++
			}
		}
		testkit.Want(t, whole == 3, "%s: %d whole rounds, want 3", done.Loads[i].Name, whole)
	}
	if read, err := result.Read(folder); err != nil || len(read.Blocks) != len(done.Blocks) || !strings.Contains(strings.Join(read.Notes, " "), "in place of rounds that were marked or missing, from block 9 on.") {
		t.Errorf("%+v, %v", read, err)
	}
	kept = done
	for want, change := range map[string]func(*Options){
		"no round of the run that is there is marked or missing": nil,
		"has another seed": func(o *Options) { o.Scenario.Seed++ },
		"another scenario": func(o *Options) { o.Scenario.Text += "#" },
		"another cabrank":  func(o *Options) { o.Version = "w" },
	} {
		if done, err := again(change); done != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestFolder(t *testing.T) {
	w := &world{takes: time.Second}
	o := w.options(t, parsed(t, text))
	file := filepath.Join(t.TempDir(), "file")
	testkit.Must(t, os.WriteFile(file, nil, 0o600))
	o.Folder = filepath.Join(file, "x")
	_, err := Run(t.Context(), o)
	testkit.Refused(t, err, "")
}

// Where not even the first block can be written, nothing is left.
func TestNothingIsLeft(t *testing.T) {
	done, folder, err := run(t, &world{takes: time.Second}, func(o *Options) {
		raw := filepath.Join(o.Folder, result.RawFolder)
		o.Tell = func(p Progress) {
			if p.Done == nil { // a file in the place of the folder
				_ = os.Remove(raw)
				if err := os.WriteFile(raw, nil, 0o600); err != nil {
					t.Error(err)
				}
			}
		}
	})
	testkit.Want(t, done == nil && err != nil, "%+v, %v", done, err)
	_, err = os.Stat(filepath.Dir(folder))
	testkit.Want(t, errors.Is(err, os.ErrNotExist), "%s was left: %v", folder, err)
}

// Where calls say how long they take, and there are slots for them, a block is held
// against a perfect queue.
func TestAgainstAnIdealQueue(t *testing.T) {
	s := parsed(t, `
name: made-up
data: '{"sleep_ms": 4}'
rounds: 1
arms:
  - {name: slots, workers: {count: 2, slots: 3}}
  - {name: none}
every_load: {duration: 20s}
loads:
  - rate: 100
  - {name: deadline, rate: 100, timeout: 1s}
  - callers: 5
  - {name: stopped, rate: 100, events: [{at: 1s, do: stop, worker: 1, for: 1s}]}
`)
	w := &world{takes: 10 * time.Millisecond}
	done, _, err := run(t, w, func(o *Options) { o.Scenario = s })
	testkit.Must(t, err)
	for i := range done.Blocks {
		b := &done.Blocks[i]
		over, known := b.Figures["over_ideal_mean"]
		if want := b.Arm == "slots" && b.Load == "100/s"; known != want || known && (over < 2.4 || over > 2.6) {
			t.Errorf("%s at %s: %v, %v", b.Arm, b.Load, over, known)
		}
	}
}

func TestTogether(t *testing.T) {
	got := together([]string{"a: no ruby.", "b: no python: install it.", "c: no ruby."})
	want := []string{"a, c: no ruby.", "b: no python: install it."}
	testkit.Want(t, slices.Equal(got, want), "got %q, want %q", got, want)
}
