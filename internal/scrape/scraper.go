package scrape

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"
)

const (
	// mostWait is how long a process may take for its page.
	mostWait = 5 * time.Second
	// tellEvery is how often the log says that a page of a worker is refused.
	tellEvery = time.Minute
	// silentAfter so many pages that did not come its gauges are not shown.
	silentAfter = 3
	// mostAtOnce is how many pages are asked for at a time, and mostLarge how many of them
	// may be large.
	mostAtOnce = 16
	mostLarge  = 4
)

// Target is a process that is there.
type Target struct {
	Worker string // "worker-1"
	PID    int
	Began  time.Time // with the PID it tells processes apart
	At     Address
}

// id tells processes apart.
type id struct {
	pid   int
	began time.Time
}

// Result is how a page was asked for.
type Result uint8

// What may come of it.
const (
	OK      Result = iota // it was read to its end
	Absent                // nobody listens there
	Late                  // it did not come in time
	Long                  // it was too long
	Broken                // it was read to a fault
	Refused               // another answer than a page
)

// String is the label of the metric.
func (r Result) String() string {
	return [...]string{"ok", "absent", "late", "long", "broken", "refused"}[r]
}

// Results returns all, in order.
func Results() []Result { return []Result{OK, Absent, Late, Long, Broken, Refused} }

// Scraper asks processes for their pages, one after the other within each interval.
//
// Life: NewScraper, Run.
// Concurrency: Last and Counts may be called from anywhere.
type Scraper struct {
	store    *Store
	targets  func() []Target
	interval func() time.Duration
	log      *slog.Logger
	fetcher  *fetcher
	places   chan struct{} // holds one for each page that is asked for
	large    chan struct{} // holds one for each of them that is large
	buffers  sync.Pool     // of *[]byte

	mu      sync.Mutex
	known   map[id]*source
	results [Refused + 1]uint64
}

// source is a process whose page is asked for.
//
// Guarded by Scraper.mu.
type source struct {
	Target

	process *Process
	asking  chan struct{} // closed when the page that is asked for has come; nil: none is
	missed  int           // pages in a row that did not come
	told    time.Time
}

// NewScraper returns a scraper of the processes that targets says are there.
func NewScraper(store *Store, targets func() []Target, interval func() time.Duration, log *slog.Logger) *Scraper {
	s := &Scraper{
		store: store, targets: targets, interval: interval, log: log, fetcher: newFetcher(),
		places: make(chan struct{}, mostAtOnce), large: make(chan struct{}, mostLarge), known: map[id]*source{},
	}
	s.buffers.New = func() any { return new([]byte) }
	return s
}

// Run asks until ctx ends. It returns when nothing of it is left, at once.
func (s *Scraper) Run(ctx context.Context) {
	var asking sync.WaitGroup
	defer asking.Wait()
	for ctx.Err() == nil {
		began, interval := time.Now(), s.interval()
		due := s.look()
		for n, from := range due {
			if !pause(ctx, time.Until(began.Add(interval*time.Duration(n)/time.Duration(len(due))))) {
				return
			}
			asking.Go(func() { s.ask(ctx, from, min(interval, mostWait)) })
		}
		pause(ctx, time.Until(began.Add(interval)))
	}
}

// pause reports whether it has lasted.
func pause(ctx context.Context, lasts time.Duration) bool {
	timer := time.NewTimer(lasts)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// look finds out who is there, and returns all of them.
func (s *Scraper) look() (all []*source) {
	there := map[id]bool{}
	for _, target := range s.targets() {
		there[id{target.PID, target.Began}] = true
		all = append(all, s.source(target))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, from := range s.known {
		if !there[name] {
			from.process.Leave()
			delete(s.known, name)
		}
	}
	return all
}

// source returns what is known of a process.
func (s *Scraper) source(target Target) *source {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := id{target.PID, target.Began}
	from := s.known[name]
	if from == nil {
		from = &source{Target: target, process: s.store.Join(target.Worker)}
		s.known[name] = from
	}
	from.At = target.At // a process opens its socket when it likes
	return from
}

// Last asks a process once more, which is about to end. It takes no longer than ctx.
func (s *Scraper) Last(ctx context.Context, target Target) {
	from := s.source(target)
	for !s.ask(ctx, from, mostWait) && ctx.Err() == nil {
		s.awaitAsked(ctx, from)
	}
}

// ask gets one page. It reports false, and gets none, if the process is being asked.
func (s *Scraper) ask(ctx context.Context, from *source, limit time.Duration) bool {
	at, ok := s.begin(from)
	if !ok {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	s.end(from, s.get(ctx, from.process, at))
	return true
}

// get gets the page of a process and reads it.
func (s *Scraper) get(ctx context.Context, of *Process, at Address) error {
	if err := enter(ctx, s.places); err != nil {
		return err
	}
	defer func() { <-s.places }()
	buffer, _ := s.buffers.Get().(*[]byte)
	defer s.buffers.Put(buffer)
	isLarge := false
	page, kind, err := s.fetcher.fetch(ctx, at, room{*buffer, s.store.pageBytes(), func() error {
		err := enter(ctx, s.large)
		isLarge = err == nil
		return err
	}})
	if isLarge {
		defer func() { <-s.large }()
	}
	if cap(page) <= smallPage {
		*buffer = page
	}
	switch {
	case err == nil:
		return of.Read(page, kind)
	case errors.Is(err, errLong):
		_ = of.read(page, kind, false) // that it is too long says more
	}
	return err
}

// enter takes one of a number of places.
func enter(ctx context.Context, places chan struct{}) error {
	select {
	case places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// begin returns where the page is; false if the process is being asked.
func (s *Scraper) begin(from *source) (at Address, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if from.asking != nil {
		return at, false
	}
	from.asking = make(chan struct{})
	return from.At, true
}

// awaitAsked waits until a page that is being asked for has come: it may have been made
// before the last calls were counted.
func (s *Scraper) awaitAsked(ctx context.Context, from *source) {
	s.mu.Lock()
	asking := from.asking
	s.mu.Unlock()
	if asking == nil {
		return
	}
	select {
	case <-asking:
	case <-ctx.Done():
	}
}

// end notes what came of a page.
func (s *Scraper) end(from *source, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(from.asking)
	from.asking = nil
	result := resultOf(err)
	s.results[result]++
	if result == OK || result == Broken || result == Long {
		from.missed = 0
	} else if from.missed++; from.missed == silentAfter {
		from.process.Silence()
	}
	if err == nil || result == Absent || errors.Is(err, context.Canceled) || time.Since(from.told) < tellEvery {
		return
	}
	from.told = time.Now()
	s.log.Warn("the metrics page of a worker cannot be taken as it is", "worker", from.Worker, "pid", from.PID, "reason", err)
}

func resultOf(err error) Result {
	_, broken := errors.AsType[*PageError](err)
	_, bounded := errors.AsType[LeftOutError](err)
	switch {
	case err == nil, bounded:
		return OK
	case errors.Is(err, errAbsent):
		return Absent
	case errors.Is(err, errLong):
		return Long
	case errors.Is(err, context.DeadlineExceeded):
		return Late
	case broken:
		return Broken
	}
	return Refused
}

// Counts returns how many pages were asked for, by result.
func (s *Scraper) Counts() map[string]uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts := map[string]uint64{}
	for _, result := range Results() {
		counts[result.String()] = s.results[result]
	}
	return counts
}
