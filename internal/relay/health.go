package relay

import (
	"bytes"
	"time"

	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/h2"
)

const (
	// maxAsides is how many reflection calls run outside the slots at a time,
	// and asideIdle how long one may be silent (R7).
	maxAsides = 4
	asideIdle = 60 * time.Second
	// maxQuestion is how much of a question is kept for the name in it: one of
	// maxService bytes with what stands around it.
	maxQuestion = grpcwire.PrefixLen + 1 + 2 + maxService
	// healthOfProcess is the name by which Cabrank says that it is alive itself, whatever
	// becomes of its workers: gRPC probes of Kubernetes have no other way to ask.
	healthOfProcess = "liveness"
	// healthOfWorkers is a name for the relay as a whole, as "" is.
	healthOfWorkers = "readiness"
)

// OwnServices says which of the services that gRPC itself defines callers reach.
type OwnServices uint8

// Those are all, health alone, or none.
const (
	OwnAll OwnServices = iota
	OwnHealth
	OwnNone
)

// offers reports whether callers reach one of gRPC's own services.
func (o OwnServices) offers(path []byte) bool {
	return o == OwnAll || o == OwnHealth && bytes.HasPrefix(path, pathHealth)
}

// Serving says whether the relay should be sent calls: enough endpoints are
// ready and it is not stopping. It is what readiness and Health/Check answer.
func (r *Relay) Serving() bool { return r.serving.Load() }

// checkServing brings the answer up to date and tells those who watch it.
func (r *Relay) checkServing() {
	r.mu.Lock()
	serving := !r.stopping && r.rank.Ready() >= r.settings().MinReady
	changed := r.serving.Swap(serving) != serving
	r.mu.Unlock()
	if changed {
		r.tellWatches()
	}
}

// tellWatches tells those who watch health what has changed for them.
func (r *Relay) tellWatches() {
	r.each(func(st *stand) {
		now := st.Now()
		for c := range st.watches {
			if status := r.healthOf(c.health.service); status != c.health.told {
				c.tellHealth(status, now)
			}
		}
	})
}

// question is about health.
type question struct {
	way     way
	service string
	told    grpcwire.HealthStatus // last, to one that watches
}

// watches reports whether the call is told of changes until it ends.
func (q *question) watches() bool { return q != nil && q.way == wayHealthWatch }

// answerHealth takes a health call at the door (R7): a check, a watch or a list.
func (c *call) answerHealth(w way, now time.Duration) {
	if c.health = (&question{way: w}); c.health.watches() {
		c.st.callFinished() // a drain does not wait for it
	}
	c.stayAtDoor(now)
	c.localData(nil, now)
}

// stayAtDoor counts a call among those that are answered here. A connection that has no
// others gives way as one without a call: whoever watches asks again.
func (c *call) stayAtDoor(now time.Duration) {
	c.state = callLocal
	c.taken()
	c.atDoor = true
	c.caller.atDoor++
	c.caller.rests()
	c.setClock(now)
}

// localData takes a part of the question, and answers when it is complete.
func (c *call) localData(p []byte, now time.Duration) {
	conn := c.down.Conn()
	if conn == nil || c.down.SentHead() {
		return
	}
	if part := p[:max(min(len(p), maxQuestion-len(c.req)), 0)]; len(part) > 0 {
		c.req = c.st.Pool().Append(c.req, part)
	}
	if !c.reqEnd {
		return
	}
	q := c.health
	q.service = serviceAsked(c.req)
	c.dropRequest()
	status := c.st.relay.healthOf(q.service)
	if q.way == wayHealthCheck && status == grpcwire.HealthServiceUnknown {
		c.code = grpcwire.NotFound
		conn.WriteHeaders(&c.down, true, c.replyHead(), c.st.relay.unknownTail)
		c.finish(now)
		return
	}
	conn.WriteHeaders(&c.down, false, c.replyHead())
	c.code = grpcwire.OK
	if q.watches() {
		c.st.watches[c] = struct{}{}
	} else {
		c.respTail = c.st.Pool().Append(nil, c.st.relay.okTail)
		c.respEnd = true
	}
	if q.way == wayHealthList {
		c.resp = c.st.Pool().Append(c.resp, c.st.relay.listHealth())
		c.pumpAnswer(now)
		return
	}
	c.tellHealth(status, now)
}

// serviceAsked returns the service that a question names. One that cannot be read is about
// the relay as a whole.
func serviceAsked(asked []byte) string {
	prefix, err := grpcwire.ParsePrefix(asked)
	if err != nil || prefix.Compressed || int(prefix.Length) != len(asked)-grpcwire.PrefixLen {
		return ""
	}
	name, err := grpcwire.ParseHealthCheckRequest(asked[grpcwire.PrefixLen:])
	if err != nil {
		return ""
	}
	return string(name)
}

// tellHealth writes a state of health. A watcher that does not read keeps at
// most one message waiting: the latest.
func (c *call) tellHealth(status grpcwire.HealthStatus, now time.Duration) {
	c.health.told = status
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
