package callee

import (
	"context"
	"encoding/json"
	"time"

	"github.com/redis/rueidis"

	"github.com/cabrank/cabrank/internal/redislink"
)

// source is where a loop takes calls from.
type source interface {
	// take waits for calls, a few seconds at most, and returns some of them, which have
	// places. Calls beside an error are taken, too.
	take(conn rueidis.DedicatedClient, most int) ([]*Call, error)
	// claim sets the deadlines of calls. It may be asked again after an error.
	claim(conn rueidis.DedicatedClient, calls []*Call) error
	// wake ends a take that waits. clean removes what is left in Redis after the loop.
	wake(ctx context.Context)
	clean(ctx context.Context)
	functions() int
}

// loop takes calls over a connection of its own, and has them run.
//
// Concurrency: it belongs to the goroutine of run.
type loop struct {
	source

	callee *Callee
	lost   bool
	held   []*Call // taken and not claimed
}

// run takes calls until taking ends, and claims what it holds until work is cut. A
// connection that is lost is opened again.
func (l *loop) run() {
	c := l.callee
	for wait := redislink.NewBackoff(); ; {
		conn, giveBack := c.client.Dedicate()
		unwatch := context.AfterFunc(c.working, conn.Close)
		err := l.serve(conn, wait)
		c.client.Look(err)
		unwatch()
		conn.Close()
		giveBack()
		if err != nil && !l.lost && c.taking.Err() == nil {
			l.lost = true
			c.log().Warn("redis is lost: no calls are taken", "functions", l.functions(), "error", err.Error())
		}
		until := c.taking
		if len(l.held) > 0 {
			until = c.working
		}
		if wait.Pause(until); until.Err() != nil {
			break
		}
	}
	for _, call := range l.held { // cut; what is kept is given back by clean
		c.counts.expired.Add(1)
		c.settle(call)
		c.calls.Done()
	}
}

// serve takes calls over a connection. An error is one of Redis; without one, taking has
// ended.
func (l *loop) serve(conn rueidis.DedicatedClient, wait *redislink.Backoff) error {
	c := l.callee
	for busy := false; ; {
		if err := l.start(conn); err != nil {
			return err
		}
		if busy {
			time.Sleep(gather)
		}
		n := c.places.await(c.taking)
		if n == 0 {
			return nil
		}
		began := time.Now()
		calls, err := l.take(conn, n)
		busy = time.Since(began) < atOnce
		l.held = append(l.held, calls...)
		if err != nil {
			return err
		}
		wait.Reset()
		if l.lost {
			l.lost = false
			c.log().Info("redis is there again", "functions", l.functions())
		}
	}
}

// start claims what is held, and has it run.
func (l *loop) start(conn rueidis.DedicatedClient) error {
	if len(l.held) == 0 {
		return nil
	}
	if err := l.claim(conn, l.held); err != nil {
		return err
	}
	for _, call := range l.held {
		l.callee.launch(call)
	}
	l.held = nil
	return nil
}

// read makes calls of entries, which have places. What is no call is nobody's.
func (c *Callee) read(uri string, entries []string) []*Call {
	calls := make([]*Call, 0, len(entries))
	for _, text := range entries {
		var e redislink.Entry
		if err := json.Unmarshal([]byte(text), &e); err != nil {
			c.places.release()
			continue
		}
		call := &Call{URI: uri, ID: e.ID, Conn: e.Conn, Args: e.Args, callee: c, function: c.functions[uri], entry: text, several: e.Several}
		if e.Several {
			call.credit.more = make(chan struct{}, 1)
		}
		call.open.Store(2)
		calls = append(calls, call)
	}
	c.counts.taken.Add(uint64(len(calls)))
	c.calls.Add(2 * len(calls))
	return calls
}

// readTimes asks how much time calls have left, in one go with further commands. It is
// counted from before the question. A call that is asked for again after its timeout key
// was deleted has expired.
func readTimes(conn rueidis.DedicatedClient, calls []*Call, more ...rueidis.Completed) error {
	ctx, cancel := context.WithTimeout(context.Background(), redislink.AnswerWithin)
	defer cancel()
	commands := make([]rueidis.Completed, 0, len(calls)+len(more))
	for _, call := range calls {
		commands = append(commands, conn.B().Pttl().Key(redislink.CallTimeoutKey(call.URI, call.ID)).Build())
	}
	asked := time.Now()
	answers := conn.DoMulti(ctx, append(commands, more...)...)
	for i, call := range calls {
		ms, err := answers[i].AsInt64()
		if err != nil {
			return err
		}
		call.deadline = asked.Add(time.Duration(ms) * time.Millisecond)
	}
	return nil
}

// launch runs a call in a goroutine of its own, if it has time left.
func (c *Callee) launch(call *Call) {
	if time.Until(call.deadline) < time.Millisecond {
		call.ended.Store(true)
		c.drop(call)
		call.leave()
		c.calls.Done()
		return
	}
	var ctx context.Context
	ctx, call.end = context.WithDeadline(c.working, call.deadline)
	call.done = ctx.Done()
	c.running.add(call)
	go call.run(ctx) // ends with its function, for which Shutdown waits
}
