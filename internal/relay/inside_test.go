package relay

import (
	"net"
	"reflect"
	"slices"
	"time"

	"github.com/cabrank/cabrank/internal/callers"
	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/head"
	"github.com/cabrank/cabrank/internal/stats"
	"github.com/cabrank/cabrank/internal/testkit"
)

// What wire scripts, and the rig, know of the relay beside what it exports is in this file. Who
// builds the relay anew writes this file anew; the scripts stay as they are.

// numbers are what the relay has, by the words of scripts.
func (g *rig) numbers() map[string]int64 {
	of := map[string]int64{
		"absorbed":    g.absorbed.Load(),           // bytes for which credit was given ahead
		"asides":      int64(g.reflections.Load()), // places of reflection beside the slots
		"connections": g.sources.Open.Load(),       // of callers over the network
		"dials":       0,                           // failed ones in a row
		"held":        0,                           // bytes that wait for callers, without what a call takes itself
		"keysused":    g.keysInUse.Load(),
		"rejecting":   int64(g.rejecting.Load()), // callers that are told why
		"running":     int64(g.running()),
		"used":        g.budget.Used(), // bytes of the budget
	}
	g.each(func(st *shardState) {
		of["callers"] += int64(len(st.callers)) // connections, those in this process, too
		of["guests"] += int64(len(st.guests))
		of["looks"] += int64(len(st.tokens.checks) + len(st.tokens.ofSource)) // at tokens
		of["replay"] += st.replay
		of["sheddable"] += int64(st.sheddable.most.Load())
		of["watches"] += int64(len(st.watches))
		of["timers"] += isSet(st.stalls.timer.Set()) // of callers' connections, and of the stall watch
		for cc := range st.callers {
			of["timers"] += isSet(cc.timer.Set())
			of["held"] += int64(cc.held)
			cc.link.Conn.Each(func(s *h2.Stream) {
				if c, is := s.Owner.(*call); is && c.node.Listed() {
					of["held"] -= int64(callSize + cap(c.head.Block) + cap(c.head.Path))
				}
			})
		}
		for _, u := range st.upstreams {
			of["dials"] += int64(u.dials.failures)
		}
	})
	return of
}

func isSet(set bool) int64 {
	if set {
		return 1
	}
	return 0
}

// keyNames returns the keys that the relay knows, in order.
func (g *rig) keyNames() (names []string) {
	g.each(func(st *shardState) {
		for _, name := range reflect.ValueOf(&st.keys.Keyring).Elem().FieldByName("byName").MapKeys() {
			names = append(names, name.String())
		}
	})
	slices.Sort(names)
	return names
}

// attach adds a connection in memory to those of an endpoint and returns its
// far end.
func (g *rig) attach(e *Endpoint) net.Conn {
	ours, theirs := net.Pipe()
	st := g.shards[0]
	st.do(func() { st.upstreamOf(e.slots).newConn().link.Attach(ours) })
	return theirs
}

// readLate has a turn look at the clock, and only after a while read what the worker
// has sent.
func (g *rig) readLate(e *Endpoint, after time.Duration, sent []byte) {
	g.t.Helper()
	st := g.shards[0]
	st.do(func() {
		pass(after)
		testkit.Must(g.t, st.upstreamOf(e.slots).conns[0].link.Conn.Feed(sent, st.Now()))
	})
}

// shedOne gives up a call that has been to the rank, as when memory gets short.
func (g *rig) shedOne() {
	st := g.shards[0]
	st.do(func() { st.someWaiting().fail(endedBuffer, st.Now()) })
}

// someWaiting returns a call that has been to the rank and can be given up.
func (st *shardState) someWaiting() *call {
	for cc := range st.callers {
		if c := cc.waiting.First(); c != nil && c.state != callGathering {
			return c
		}
	}
	return nil
}

// waitingSize is what a call that waits takes beside its bytes: its HEADERS and its
// path are in buffers of 1 KiB.
const waitingSize = callSize + 2<<10

// wireConstants are the names of numbers in scripts.
func wireConstants() map[string]int64 {
	return map[string]int64{
		"max": lastID, "connWindow": connWindow, "enoughAnswers": stats.EnoughAnswers, "maxResets": maxResets, "maxRejecting": maxRejecting, "rejectTime": int64(rejectTime), "maxComplaints": maxComplaints,
		"gatherFor": int64(gatherFor), "holdBriefly": int64(holdBriefly), "quietAfter": int64(quietAfter), "enoughRuns": stats.EnoughRuns, "maxMethods": stats.MaxMethods, "maxUnproven": stats.MaxUnproven, "maxChecksOf": maxChecksOf,
		"maxKeepAlive": int64(maxKeepAlive), "maxAdded": int64(head.MaxAdded), "largeLists": int64(h2.CallerAllowances()[h2.LargeList].Burst), "gatherLonger": int64(gatherLonger), "holdFor": int64(holdFor), "firstBackOff": int64(firstBackOff),
		"messageTime": int64(messageTime), "trailersTime": int64(trailersTime), "unheardFor": int64(maxDetached), "dialTimeout": int64(dialTimeout), "localIdle": int64(localIdle),
		"absentAfter": int64(absentAfter), "keepAliveAnswer": int64(keepAliveAnswer), "finalGoAway": int64(finalGoAway),
		"stallEvery": int64(stallEvery), "minKeyIdle": int64(callers.MinKeyIdle), "ownPatience": int64(callers.OwnIdleTime), "maxPassTime": int64(callers.MaxPassTime), "outputHigh": outputHigh, "waitingSize": waitingSize,
	}
}
