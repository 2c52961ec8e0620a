package relay

import (
	"time"

	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/h2"
)

const (
	// maxAsides is how many reflection calls run outside the slots at a time,
	// and asideIdle how long one may be silent (R7).
	maxAsides = 4
	asideIdle = 60 * time.Second
)

// Serving says whether the relay should be sent calls: enough endpoints are
// ready and it is not stopping. It is what readiness and Health/Check answer.
func (r *Relay) Serving() bool { return r.serving.Load() }

// checkServing brings the answer up to date and tells those who watch it.
func (r *Relay) checkServing() {
	r.mu.Lock()
	serving := !r.stopping && r.rank.Ready() >= r.settings().MinReady
	changed := r.serving.Swap(serving) != serving
	r.mu.Unlock()
	if !changed {
		return
	}
	r.each(func(st *stand) {
		now := st.Now()
		for c := range st.watches {
			c.tellHealth(now)
		}
	})
}

// answerCheck and answerWatch take a health call at the door (R7). Whatever
// service it names, the answer is about the relay as a whole: which worker a
// call for that service will meet is not known before.
func (c *call) answerCheck(now time.Duration) {
	c.state = callLocal
	c.taken()
	c.setClock(now)
	if c.reqEnd {
		c.localData(now)
	}
}

func (c *call) answerWatch(now time.Duration) {
	c.state, c.watch = callLocal, true
	c.taken()
	c.st.callFinished() // a drain does not wait for it
	c.setClock(now)
	if c.reqEnd {
		c.localData(now)
	}
}

// localData answers when the question is complete. Its bytes are not needed.
func (c *call) localData(now time.Duration) {
	conn := c.down.Conn()
	if !c.reqEnd || conn == nil || c.down.SentHead() {
		return
	}
	conn.WriteHeaders(&c.down, false, c.replyHead())
	if c.watch {
		c.st.watches[c] = struct{}{}
	} else {
		c.respTail = c.st.Pool().Append(nil, c.st.relay.okTail)
		c.respEnd = true
	}
	c.code = grpcwire.OK
	c.tellHealth(now)
}

// tellHealth writes the state of health. A watcher that does not read keeps at
// most one message waiting: the latest.
func (c *call) tellHealth(now time.Duration) {
	status := grpcwire.HealthNotServing
	if c.st.relay.Serving() {
		status = grpcwire.HealthServing
	}
	var buf [16]byte
	message := grpcwire.AppendHealthCheckResponse(buf[:0], status)
	// The end of a message whose beginning was sent stays; all are as long.
	begun := (len(c.resp) - c.respSent) % len(message)
	c.resp = c.resp[:c.respSent+begun]
	c.resp = c.st.Pool().Append(c.resp, message)
	c.pumpAnswer(now)
}

// takeAside takes one of the places for reflection calls.
func (r *Relay) takeAside() bool {
	if r.asides.Add(1) <= maxAsides {
		return true
	}
	r.asides.Add(-1)
	return false
}

// enterAside sends a reflection call to any ready worker, outside the slots.
func (c *call) enterAside(now time.Duration) {
	u := c.st.readyUpstream()
	var conn *h2.Conn
	if u != nil {
		conn = u.conn(now)
	}
	if conn == nil { // it waits like any other call
		c.st.relay.asides.Add(-1)
		c.enter(now)
		return
	}
	c.aside, c.state = true, callRunning
	c.taken()
	c.boundRun(now)
	c.setClock(now)
	c.open(conn, now)
}

// moveAside takes a reflection call from its worker to another one.
func (c *call) moveAside(now time.Duration) {
	c.leaveStream()
	c.up.Clear()
	c.forget()
	c.enterAsideAgain(now)
}

// enterAsideAgain gives its place to the next worker, or has it wait like any other
// call.
func (c *call) enterAsideAgain(now time.Duration) {
	c.aside = false
	c.enterAside(now)
}

// touchAside moves the end of an idle reflection call.
func (c *call) touchAside(now time.Duration) {
	if c.aside {
		c.setClock(now)
	}
}
