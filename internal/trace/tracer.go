// Package trace tells of calls by spans of OpenTelemetry, and sends these by OTLP over HTTP.
//
// Start from Tracer. Begin decides whether a call is recorded; its Call is filled in under the
// lock of its shard. End puts it into a queue, from which one goroutine sends batches of spans.
// What does not fit, and what nobody takes, is dropped and counted: no call waits.
package trace

import (
	"context"
	"hash/maphash"
	"math"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// batch is how many spans are sent at once, mostSpans how many wait at most.
	batch, mostSpans = 512, 4096
	// perSecond bounds the calls of an address that come sampled and get spans, as strangers may
	// set the flag, too. All addresses share counters.
	perSecond, counters = 100, 4096
)

// Tracer makes records of calls and sends spans. Begin, End and Close of a nil Tracer do nothing.
//
// Life: New, Begin and End of calls, Close.
// Concurrency: may be used from anywhere.
type Tracer struct {
	// Counts of spans: the collector has them; the queue was full; the collector did not answer,
	// or with an error; it did not want them.
	Exported, Full, Failed, Rejected atomic.Uint64
	// Limited counts calls that came sampled and got no spans: too many of one address.
	Limited atomic.Uint64

	share  atomic.Uint64 // the bits of a float64
	seed   maphash.Seed
	counts [counters]atomic.Uint64 // a second, and the calls in it
	pool   sync.Pool               // of *Call
	spans  atomic.Int64            // in queue
	queue  chan *Call              // has room for mostSpans
	full   chan struct{}           // has room for one: queue has a batch
	stop   chan struct{}           // closed by Close
	done   chan struct{}           // closed by run
	cancel context.CancelFunc      // ends what run sends
	sender sender                  // belongs to run
}

// New returns a tracer, which sends spans until Close.
func New(o Options) *Tracer {
	t := &Tracer{
		seed: maphash.MakeSeed(), queue: make(chan *Call, mostSpans), full: make(chan struct{}, 1),
		stop: make(chan struct{}), done: make(chan struct{}), sender: newSender(o),
	}
	t.pool.New = func() any { return new(Call) }
	t.SetShare(o.Share)
	var ctx context.Context
	ctx, t.cancel = context.WithCancel(context.Background())
	go t.run(ctx) // ended by Close, which waits for it
	return t
}

// SetShare changes the share of the calls without a trace that begin one, 0 to 1.
func (t *Tracer) SetShare(share float64) { t.share.Store(math.Float64bits(share)) }

// Begin returns the record of a call, or nil if it gets no spans. found says whether it came
// with a trace context.
func (t *Tracer) Begin(from Context, found bool, caller string, now time.Duration) *Call {
	switch {
	case t == nil || found && from.Flags&sampled == 0:
		return nil
	case found && !t.allows(caller, now):
		t.Limited.Add(1)
		return nil
	case !found && rand.Float64() >= math.Float64frombits(t.share.Load()):
		return nil
	case !found:
		high, low := newID(), newID()
		from = Context{Flags: sampled}
		copy(from.Trace[copy(from.Trace[:], high[:]):], low[:])
	}
	c, _ := t.pool.Get().(*Call)
	*c = Call{From: from, self: part{span: newID(), start: now}, caller: caller, Path: c.Path[:0], state: c.state[:0], parts: c.parts[:0]}
	return c
}

// allows counts a call of an address, and reports whether it is within perSecond.
func (t *Tracer) allows(caller string, now time.Duration) bool {
	const bits = 8 // of the calls
	count := &t.counts[maphash.String(t.seed, caller)%counters]
	for {
		was := count.Load()
		next := max(was, uint64(now/time.Second)<<bits) + 1 // another shard may be in the next second
		switch {
		case next%(1<<bits) > perSecond:
			return false
		case count.CompareAndSwap(was, next):
			return true
		}
	}
}

// End takes the record of a call that has ended, and does not wait.
func (t *Tracer) End(c *Call, now time.Duration) {
	if c == nil {
		return
	}
	c.self.end, c.self.code = now, c.Code
	for i := range c.parts {
		c.Finish(i, c.Code, c.Reason, now)
	}
	n := int64(1 + len(c.parts))
	sum := t.spans.Add(n)
	if sum > mostSpans {
		t.spans.Add(-n)
		t.Full.Add(uint64(n))
		t.pool.Put(c)
		return
	}
	t.queue <- c // there is room: each call has a span
	if sum >= batch && sum-n < batch {
		select {
		case t.full <- struct{}{}:
		default:
		}
	}
}

// Close sends what waits, each batch once. What is left after so long is lost, and what ends
// later.
func (t *Tracer) Close(within time.Duration) {
	if t != nil {
		defer t.cancel()
		defer time.AfterFunc(within, t.cancel).Stop()
		close(t.stop)
		<-t.done
	}
}

// run sends spans when there is a batch of them, and each second.
func (t *Tracer) run(ctx context.Context) {
	defer close(t.done)
	defer func() { (&http.Client{Transport: t.sender.http}).CloseIdleConnections() }()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for open := true; open || len(t.queue) > 0; {
		if open && t.spans.Load() < batch {
			select {
			case <-t.full:
				continue // it may be of a batch that was sent
			case <-tick.C:
			case <-t.stop:
				open = false
			}
		}
		t.sendBatch(ctx)
	}
}

// sendBatch sends the calls that have waited longest, and counts what becomes of their spans.
func (t *Tracer) sendBatch(ctx context.Context) {
	var calls []*Call
	spans := 0
	for spans < batch && len(t.queue) > 0 {
		c := <-t.queue
		calls, spans = append(calls, c), spans+1+len(c.parts)
	}
	if spans == 0 {
		return
	}
	t.spans.Add(-int64(spans))
	rejected, err := t.sender.send(ctx, t.stop, calls)
	rejected = min(rejected, spans)
	if err != nil {
		t.Failed.Add(uint64(spans))
	} else {
		t.Rejected.Add(uint64(rejected))
		t.Exported.Add(uint64(spans - rejected))
	}
	for _, c := range calls {
		if cap(c.parts) <= 4 { // the memory of exceptional calls is not kept
			t.pool.Put(c)
		}
	}
}
