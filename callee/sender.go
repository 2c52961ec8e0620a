package callee

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/cabrank/cabrank/internal/redislink"
)

const (
	// mostStored is how many results are stored together.
	mostStored = 256

	// mostWaiting is how many results may wait for Redis: calls that end when it is gone.
	// What is above is lost, and expires.
	mostWaiting = 100_000
)

// stored is a result on its way.
type stored struct {
	call    *Call
	payload string
	over    bool // there is no result, or it is stored: the call is only to be forgotten
	more    bool // it is not the last one
}

// sender stores results: while Redis answers, the next ones gather.
//
// Concurrency: add may be called from anywhere.
type sender struct {
	callee *Callee
	more   chan struct{} // holds one if there are results
	ended  sync.WaitGroup
	cancel context.CancelFunc

	mu      sync.Mutex
	waiting []stored
	closed  bool // what comes now is lost
}

func newSender(c *Callee) *sender {
	s := &sender{callee: c, more: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	s.ended.Go(func() { s.run(ctx) })
	return s
}

// stop ends it; what waits is lost.
func (s *sender) stop() {
	s.cancel()
	s.ended.Wait()
	s.mu.Lock()
	s.closed = true
	left := s.waiting
	s.waiting = nil
	s.mu.Unlock()
	s.abandon(left)
}

// abandon gives up what cannot be stored.
func (s *sender) abandon(left []stored) {
	for _, lost := range left {
		if lost.more {
			continue
		}
		if !lost.over {
			s.callee.counts.expired.Add(1)
		}
		s.callee.settle(lost.call)
	}
}

func (s *sender) add(results ...stored) {
	s.mu.Lock()
	room := min(len(results), max(mostWaiting-len(s.waiting), 0))
	if s.closed {
		room = 0
	}
	s.waiting = append(s.waiting, results[:room]...)
	s.mu.Unlock()
	s.abandon(results[room:])
	select {
	case s.more <- struct{}{}:
	default: // it was told already
	}
}

// back queues again what Redis has not taken, until its time is over, in its order.
func (s *sender) back(failed []stored) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(failed) > 0 {
		s.waiting = append(failed, s.waiting...)
	}
}

func (s *sender) take() []stored {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := min(len(s.waiting), mostStored)
	batch := s.waiting[:n:n]
	if s.waiting = s.waiting[n:]; len(s.waiting) == 0 {
		s.waiting = nil
	}
	return batch
}

// run stores results until ctx ends.
func (s *sender) run(ctx context.Context) {
	wait := redislink.NewBackoff()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.more:
		}
		for ctx.Err() == nil {
			batch := s.take()
			if len(batch) == 0 {
				break
			}
			failed := s.store(ctx, batch)
			switch {
			case len(failed) == len(batch):
				wait.Pause(ctx)
			case len(batch) > 1:
				time.Sleep(gather)
				fallthrough
			default:
				wait.Reset()
			}
			s.back(failed)
		}
	}
}

// store returns what Redis has not taken.
func (s *sender) store(ctx context.Context, batch []stored) (failed []stored) {
	ctx, cancel := context.WithTimeout(ctx, redislink.AnswerWithin)
	defer cancel()
	parcels, over := s.pack(batch)
	commands := make([]rueidis.Completed, 0, 2*len(batch))
	for _, p := range parcels {
		commands = append(commands, p.commands...)
		commands = append(commands, s.callee.client.B().Lpush().Key(redislink.ResultsKey(p.conn)).Element(p.payloads...).Build())
	}
	answers := s.callee.client.DoMulti(ctx, commands...)
	for _, p := range parcels {
		n := len(p.commands) + 1
		err := firstError(answers[:n])
		answers = answers[n:]
		if err != nil {
			failed = append(failed, p.results...)
			continue
		}
		for _, r := range p.results {
			if !r.more {
				s.callee.counts.answered.Add(1)
				over = append(over, stored{call: r.call, over: true})
			}
		}
	}
	return append(failed, s.forget(ctx, over)...)
}

// parcel is the results for one list: the timeout keys first, then all entries at once.
type parcel struct {
	conn     string
	results  []stored
	payloads []string
	commands []rueidis.Completed
}

// pack sorts results by their lists. Those whose time is over are for nobody.
func (s *sender) pack(batch []stored) (parcels []*parcel, over []stored) {
	byConn := map[string]*parcel{}
	for _, r := range batch {
		ms := time.Until(r.call.deadline).Milliseconds()
		if !r.over && ms < 1 {
			if r.more {
				continue
			}
			s.callee.counts.expired.Add(1)
			r.over = true
		}
		if r.over {
			over = append(over, r)
			continue
		}
		p := byConn[r.call.Conn]
		if p == nil {
			p = &parcel{conn: r.call.Conn}
			byConn[p.conn] = p
			parcels = append(parcels, p)
		}
		p.results = append(p.results, r)
		p.payloads = append(p.payloads, r.payload)
		p.commands = append(p.commands, s.callee.client.B().Set().Key(redislink.ResultTimeoutKey(p.conn, r.call.ID)).
			Value(strconv.FormatInt(ms, 10)).PxMilliseconds(ms).Build())
	}
	return parcels, over
}

// forget settles calls, those that are kept when Redis has forgotten them. It returns those
// that it has not.
func (s *sender) forget(ctx context.Context, over []stored) (failed []stored) {
	var kept []stored
	var commands []rueidis.Completed
	for _, r := range over {
		if k := r.call.keeper(); k != nil {
			kept = append(kept, r)
			commands = append(commands, k.forget(r.call)...)
			continue
		}
		s.callee.settle(r.call)
	}
	answers := s.callee.client.DoMulti(ctx, commands...)
	for i, r := range kept {
		if firstError(answers[2*i:2*i+2]) != nil {
			failed = append(failed, r)
			continue
		}
		s.callee.settle(r.call)
	}
	return failed
}

func firstError(answers []rueidis.RedisResult) error {
	for _, answer := range answers {
		if err := answer.Error(); err != nil {
			return err
		}
	}
	return nil
}
