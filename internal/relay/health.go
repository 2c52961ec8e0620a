package relay

import (
	"bytes"
	"time"

	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/head"
)

const (
	// maxReflections is how many reflection calls run outside the slots at a time,
	// and reflectionIdle how long one may be silent (R7).
	maxReflections = 4
	reflectionIdle = 60 * time.Second
	// maxQuestion is the longest question that is kept: a name of maxService bytes with
	// its framing.
	maxQuestion = grpcwire.PrefixLen + 1 + 2 + maxService
	// healthOfProcess is the service name for Cabrank itself: it is alive whatever its
	// workers do. gRPC probes of Kubernetes have no other way to ask.
	healthOfProcess = "liveness"
	// healthOfWorkers, like "", is the service name for the relay as a whole.
	healthOfWorkers = "readiness"
)

// OwnServices says which services of gRPC itself callers can reach.
type OwnServices uint8

// All of gRPC's own services, health alone, or none.
const (
	OwnAll OwnServices = iota
	OwnHealth
	OwnNone
)

// offers reports whether callers can reach the service of a path.
func (o OwnServices) offers(path []byte) bool {
	return o == OwnAll || o == OwnHealth && bytes.HasPrefix(path, []byte("/grpc.health."))
}

// route is how a request is served.
type route uint8

const (
	routeCall route = iota
	routeHealthCheck
	routeHealthWatch
	routeHealthList
	routeReflection
)

// routeOf tells health and reflection calls from ordinary ones (R7). A reflection call above
// maxReflections is an ordinary one.
func (r *Relay) routeOf(h *head.Head) route {
	switch {
	case h.IsCheck():
		return routeHealthCheck
	case string(h.Path) == "/grpc.health.v1.Health/Watch":
		return routeHealthWatch
	case string(h.Path) == "/grpc.health.v1.Health/List":
		return routeHealthList
	case bytes.HasPrefix(h.Path, []byte("/grpc.reflection.")) && r.takeReflection():
		return routeReflection
	}
	return routeCall
}

// Serving reports whether the relay should get calls: enough endpoints are ready and it is
// not stopping. Readiness and Health/Check answer this.
func (r *Relay) Serving() bool { return r.serving.Load() }

// checkServing updates Serving and tells the watchers of health.
func (r *Relay) checkServing() {
	r.mu.Lock()
	serving := !r.stopping && r.rank.Ready() >= r.settings().MinReady
	changed := r.serving.Swap(serving) != serving
	r.mu.Unlock()
	if changed {
		r.tellWatches()
	}
}

// tellWatches sends watchers of health their changed status.
func (r *Relay) tellWatches() {
	r.each(func(st *shardState) {
		now := st.Now()
		for c := range st.watches {
			if status := r.healthOf(c.health.service); status != c.health.lastSent {
				c.tellHealth(status, now)
			}
		}
	})
}

// question is the content of a health call.
type question struct {
	route    route
	service  string
	lastSent grpcwire.HealthStatus // the last status that a watcher got
}

// watches reports whether the call is a Watch, which gets changes until it ends.
func (q *question) watches() bool { return q != nil && q.route == routeHealthWatch }

// answerHealth begins to answer a health call (R7): a check, a watch or a list.
func (c *call) answerHealth(route route, now time.Duration) {
	if c.health = (&question{route: route}); c.health.watches() {
		c.st.callFinished() // a drain does not wait for a watch
	}
	c.become(callLocal)
	c.noteTaken()
	// A connection with no other calls counts as idle and may be evicted: a watcher asks again.
	c.caller.answeredHere++
	c.caller.markIdle()
	c.setClock(now)
	c.localData(nil, now)
}

// leaveHealth forgets a health call that has ended.
func (c *call) leaveHealth() {
	c.caller.answeredHere--
	delete(c.st.watches, c)
}

// localData takes bytes of the question, and answers when it is complete.
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
	if q.route == routeHealthCheck && status == grpcwire.HealthServiceUnknown {
		c.code = grpcwire.NotFound
		conn.WriteHeaders(&c.down, true, c.replyHead(), c.st.relay.unknownTail)
		c.end(now)
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
	if q.route == routeHealthList {
		c.resp = c.st.Pool().Append(c.resp, c.st.relay.listHealth())
		c.pumpAnswer(now)
		return
	}
	c.tellHealth(status, now)
}

// serviceAsked returns the service that a question names, "" for a question that cannot be
// read.
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

// tellHealth writes a health status. For a watcher that does not read, only the latest
// message waits.
func (c *call) tellHealth(status grpcwire.HealthStatus, now time.Duration) {
	c.health.lastSent = status
	var buf [16]byte
	message := grpcwire.AppendHealthCheckResponse(buf[:0], status)
	// The rest of a message that was sent in part stays. All have the same length.
	begun := (len(c.resp) - c.respSent) % len(message)
	c.resp = c.resp[:c.respSent+begun]
	c.resp = c.st.Pool().Append(c.resp, message)
	c.pumpAnswer(now)
}

// takeReflection takes one of maxReflections places.
func (r *Relay) takeReflection() bool {
	if r.reflections.Add(1) <= maxReflections {
		return true
	}
	r.reflections.Add(-1)
	return false
}

// startReflection sends a reflection call to any ready worker, outside the slots.
func (c *call) startReflection(now time.Duration) {
	u := c.st.readyUpstream()
	var conn *h2.Conn
	if u != nil {
		conn = u.conn(now)
	}
	if conn == nil { // no worker is ready: wait like any other call
		c.st.relay.reflections.Add(-1)
		c.acquire(now)
		return
	}
	c.reflection = true
	c.become(callRunning)
	c.noteTaken()
	c.applyCallTimeout(now)
	c.setClock(now)
	c.open(conn, now)
}
