package discover

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"
)

const (
	// retryMax bounds the pause between lookups that fail; it doubles from MinTTL.
	retryMax = 30 * time.Second
	// spreadPart of the TTL of an answer is added to it at most, so that instances that
	// began together do not ask together.
	spreadPart = 0.1
)

// source looks one name up for as long as it is configured.
//
// Concurrency: the fields belong to the goroutine of run, except where the comments say
// otherwise.
type source struct {
	// Set by newSource, never changed.
	entry    entry
	lookup   *lookup
	min, max time.Duration
	random   func() float64 // between 0 and 1
	log      *slog.Logger
	publish  func([]target) // takes the present endpoints of the name
	poked    chan struct{}  // one token

	targets    []target
	emptySince time.Time // when the name was first found without addresses; zero: it has some
	failures   int       // failed lookups in a row
	cut        bool      // the log has told that the name has too many addresses

	// Read from any goroutine.
	count     [failed + 1]atomic.Uint64 // lookups by outcome
	addresses atomic.Int64              // len(targets)
}

// run looks the name up until ctx ends.
func (s *source) run(ctx context.Context) {
	for {
		found := s.lookup.run(ctx)
		if ctx.Err() != nil {
			return
		}
		now := time.Now()
		if !s.rest(ctx, now, s.take(found, now)) {
			return
		}
	}
}

// poke asks for a lookup at once: an endpoint of the name has failed, and may
// have been replaced. It may be called from anywhere.
func (s *source) poke() {
	select {
	case s.poked <- struct{}{}:
	default: // a lookup is due already
	}
}

// rest waits until the next lookup is due, or a poke comes, but never less than
// the least time between two lookups. It reports false when ctx ended first.
func (s *source) rest(ctx context.Context, asked time.Time, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for poked := s.poked; ; {
		select {
		case <-ctx.Done():
			return false
		case <-timer.C:
			return true
		case <-poked:
			poked = nil
			if soon := time.Until(asked.Add(s.min)); soon < time.Until(asked.Add(wait)) {
				timer.Reset(max(soon, 0))
			}
		}
	}
}

// take takes in a result and returns how long to wait for the next lookup.
func (s *source) take(found result, now time.Time) time.Duration {
	s.count[found.outcome].Add(1)
	if found.outcome == failed {
		return s.takeFailure(found)
	}
	if s.failures > 0 {
		s.log.Info("name can be looked up again", "name", s.entry.name, "failures", s.failures)
	}
	s.failures = 0
	wait := s.spread(s.bound(found.ttl))
	if found.outcome == empty {
		return min(wait, s.takeEmpty(now))
	}
	s.emptySince = time.Time{}
	s.tellCut(found.left)
	s.set(found.targets)
	return wait
}

// takeFailure keeps the known addresses. Answers of a part of the servers count.
func (s *source) takeFailure(found result) time.Duration {
	if s.failures++; s.failures == 1 {
		s.log.Warn("name cannot be looked up, its last addresses stay", "name", s.entry.name, "addresses", len(s.targets), "error", found.err)
	}
	if len(found.targets) > 0 {
		s.set(found.targets)
	}
	pause := s.min
	for i := 1; i < s.failures && pause < retryMax; i++ {
		pause *= 2
	}
	pause = min(pause, retryMax, s.max)
	if len(found.targets) > 0 && found.ttl >= 0 { // a server that never answers AAAA must not delay lookups of A
		pause = min(pause, s.bound(found.ttl))
	}
	return s.spread(pause)
}

// bound keeps the time of an answer within what the operator wants.
func (s *source) bound(ttl time.Duration) time.Duration { return min(max(ttl, s.min), s.max) }

func (s *source) spread(wait time.Duration) time.Duration {
	return wait + time.Duration(float64(wait)*spreadPart*s.random())
}

// takeEmpty keeps the last addresses for a time, and returns how much of it is left. An
// empty answer is more often a passing state of the zone (a Service without ready pods, a
// zone that is being written) than the end of all endpoints; and endpoints that have
// really gone cannot be reached anyway.
func (s *source) takeEmpty(now time.Time) time.Duration {
	if s.emptySince.IsZero() {
		s.emptySince = now
		s.log.Warn("name has no addresses", "name", s.entry.name, "last_ones", len(s.targets), "stay_for", s.max.String())
	}
	left := s.emptySince.Add(s.max).Sub(now)
	if len(s.targets) == 0 {
		return s.max
	}
	if left <= 0 {
		s.log.Warn("name has had no addresses for too long, its last ones are given up", "name", s.entry.name, "addresses", len(s.targets))
		s.set(nil)
		return s.max
	}
	return left
}

// set publishes the endpoints of the name.
func (s *source) set(targets []target) {
	s.targets = targets
	s.addresses.Store(int64(len(targets)))
	s.publish(targets)
}

func (s *source) tellCut(left int) {
	if left > 0 && !s.cut {
		s.log.Warn("name has too many addresses, the rest is not used", "name", s.entry.name, "used", maxAddresses, "left", left)
	}
	s.cut = left > 0
}

// Lookups counts the lookups of one name.
type Lookups struct {
	Name      string            // as it was written: "dns:NAME:PORT" or "srv:NAME"
	Addresses int               // present endpoints of the name
	Results   map[string]uint64 // lookups since the process began, by "answered", "empty" or "failed"
}

func (s *source) lookups() Lookups {
	told := Lookups{Name: s.entry.text, Addresses: int(s.addresses.Load()), Results: make(map[string]uint64)}
	for i := range s.count {
		told.Results[outcome(i).String()] = s.count[i].Load()
	}
	return told
}
