package discover

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

// watched is a source in a bubble of its own time, with all that it published.
type watched struct {
	*source

	script *script
	log    *strings.Builder

	mu  sync.Mutex
	got [][]string
}

// watchName runs a source of "w" until the test ends.
func watchName(t *testing.T, s *script, least, most time.Duration) *watched {
	t.Helper()
	w := &watched{script: s, log: new(strings.Builder)}
	e := byName(t, "dns:w:1")
	w.source = &source{
		entry: e, lookup: newLookup(s, e), min: least, max: most, random: func() float64 { return 0 },
		log: slog.New(slog.NewTextHandler(w.log, nil)), poked: make(chan struct{}, 1),
		publish: func(targets []target) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.got = append(w.got, shown(targets))
		},
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { w.run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	synctest.Wait()
	return w
}

// want lets time pass and holds what the name stands for then, and how often it has been
// looked up; -1 is any number.
func (w *watched) want(t *testing.T, what string, d time.Duration, rounds int, targets ...string) {
	t.Helper()
	<-time.After(d)
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	var got []string
	if len(w.got) > 0 {
		got = w.got[len(w.got)-1]
	}
	if looked := w.script.rounds("A w."); !slices.Equal(got, targets) || rounds >= 0 && looked != rounds {
		t.Errorf("%s: %q after %d lookups, want %q after %d", what, got, looked, targets, rounds)
	}
}

// A name is looked up when its answer's time is over, within the bounds.
func TestSourceObeysTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		s.say("A w.", 10*time.Second, "10.0.0.1")
		s.say("AAAA w.", time.Hour)
		w := watchName(t, s, 2*time.Second, 30*time.Second)
		w.want(t, "at once", 0, 1, "10.0.0.1:1")
		s.say("A w.", time.Millisecond, "10.0.0.2")
		w.want(t, "while it holds", 9*time.Second, 1, "10.0.0.1:1")
		w.want(t, "when it is over", 2*time.Second, 2, "10.0.0.2:1")
		s.say("A w.", time.Hour, "10.0.0.3")
		w.want(t, "never sooner than MinTTL", 500*time.Millisecond, 2, "10.0.0.2:1")
		w.want(t, "after MinTTL", 1500*time.Millisecond, 3, "10.0.0.3:1")
		w.want(t, "before MaxTTL", 28*time.Second, 3, "10.0.0.3:1")
		w.want(t, "after MaxTTL", 2*time.Second, 4, "10.0.0.3:1")
	})
}

// The time between lookups is spread over a tenth of it.
func TestSourceSpreads(t *testing.T) {
	s := &source{min: time.Second, max: time.Minute, random: func() float64 { return 0.5 }, publish: func([]target) {}}
	testkit.Equal(t, s.take(result{ttl: 20 * time.Second}, time.Now()), 21*time.Second, "next lookup after")
}

// A poke has the name looked up at once, but never sooner than MinTTL after the
// last time.
func TestSourceIsPoked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		s.say("A w.", time.Hour, "10.0.0.1")
		s.say("AAAA w.", time.Hour)
		w := watchName(t, s, 2*time.Second, time.Hour)
		w.want(t, "at first", 10*time.Second, 1, "10.0.0.1:1")
		s.say("A w.", time.Hour, "10.0.0.2")
		w.poke()
		w.want(t, "poked", 0, 2, "10.0.0.2:1")
		for range 100 {
			w.poke()
			<-time.After(10 * time.Millisecond)
		}
		w.want(t, "poked a hundred times", 0, 2, "10.0.0.2:1")
		w.want(t, "after MinTTL", 1100*time.Millisecond, 3, "10.0.0.2:1")
	})
}

// Lookups that fail change nothing, are tried again ever more rarely, and are
// counted and told once.
func TestSourceKeepsWhatItKnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		s.say("A w.", 5*time.Second, "10.0.0.1")
		s.say("AAAA w.", time.Hour)
		w := watchName(t, s, time.Second, time.Hour)
		s.fail("A w.")
		s.fail("AAAA w.")
		w.want(t, "first failure", 5*time.Second, 2, "10.0.0.1:1")
		w.want(t, "after 1, 2, 4, 8 s", 15*time.Second, 6, "10.0.0.1:1")
		w.want(t, "after a day, every 30 s", 24*time.Hour, 6+1+2880-1, "10.0.0.1:1")
		s.say("A w.", 5*time.Second, "10.0.0.2")
		s.say("AAAA w.", time.Hour)
		w.want(t, "afterwards", 30*time.Second, -1, "10.0.0.2:1")
		told := w.lookups()
		if told.Name != "dns:w:1" || told.Addresses != 1 || told.Results["failed"] < 2880 || told.Results["answered"] < 2 || told.Results["empty"] != 0 {
			t.Errorf("%+v", told)
		}
		testkit.Equal(t, strings.Count(w.log.String(), "\n"), 2, "lines of\n%s", w.log)
	})
}

// A question that nobody ever answers (servers that drop AAAA) does not keep the
// others from being asked in time.
func TestSourceObeysTTLOfAPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		s.say("A w.", 5*time.Second, "10.0.0.1")
		s.fail("AAAA w.")
		w := watchName(t, s, time.Second, time.Hour)
		w.want(t, "all the time", time.Hour, -1, "10.0.0.1:1")
		s.say("A w.", 5*time.Second, "10.0.0.2")
		w.want(t, "in time", 6*time.Second, -1, "10.0.0.2:1")
		testkit.Equal(t, strings.Count(w.log.String(), "\n"), 1, "lines of\n%s", w.log)
	})
}

// A name without addresses keeps its last ones for MaxTTL, and no longer; if it
// gets some before, nothing has happened.
func TestSourceForgivesEmptiness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		s.say("A w.", time.Second, "10.0.0.1")
		s.say("AAAA w.", time.Second)
		w := watchName(t, s, time.Second, time.Minute)
		for range 2 {
			s.say("A w.", time.Second)
			w.want(t, "for a time", 59*time.Second, -1, "10.0.0.1:1")
			s.say("A w.", time.Second, "10.0.0.1")
			w.want(t, "again", 5*time.Second, -1, "10.0.0.1:1")
		}
		s.say("A w.", time.Second)
		w.want(t, "in the end", 62*time.Second, -1)
		testkit.Equal(t, strings.Count(w.log.String(), "name has no addresses"), 3, "times without addresses, in\n%s", w.log)
		s.say("A w.", time.Second, "10.0.0.2")
		w.want(t, "after the end", 2*time.Second, -1, "10.0.0.2:1")
	})
}

// A name that never had an address is no reason to stop looking.
func TestSourceStartsEmpty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		s.fail("A w.")
		w := watchName(t, s, time.Second, time.Minute)
		w.want(t, "at first", 0, 1)
		s.say("A w.", time.Second)
		w.want(t, "empty", time.Second, 2)
		s.say("A w.", time.Minute, "10.0.0.1")
		w.want(t, "at last", time.Second, 3, "10.0.0.1:1")
	})
}
