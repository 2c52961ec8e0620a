package relay

import (
	"time"

	"github.com/cabrank/cabrank/internal/shard"
)

const (
	// absentAfter is the silence after which a caller with calls gets a PING. gRPC's
	// clients answer every PING and punish none.
	absentAfter = 30 * time.Second
	// absentLooks is the time between two looks at all callers. Together with
	// keepAliveAnswer it ends the calls of a caller without a network within 55 s.
	absentLooks = 5 * time.Second
)

// absentWatch ends the connections of callers with calls that the network has cut off.
// TCP alone does not notice: a stream may have nothing to send for hours.
//
// A caller behind a slow line has other bytes to receive before the PING. It gets another
// keepAliveAnswer as long as its machine acknowledges bytes.
//
// The timer is set only while a caller behind a network has calls.
// Concurrency: guarded by the lock of its shard.
type absentWatch struct {
	st     *shardState
	timer  shard.Timer
	absent []*callerConn // scratch
}

func newAbsentWatch(st *shardState) *absentWatch {
	w := &absentWatch{st: st}
	w.timer.Owner = w
	return w
}

// wind sets the timer for the next look.
func (w *absentWatch) wind(now time.Duration) {
	if !w.timer.Set() {
		w.st.SetTimer(&w.timer, now+absentLooks)
	}
}

// Expired implements shard.Expirer.
func (w *absentWatch) Expired(_ *shard.Timer, now time.Duration) {
	for cc := range w.st.callers {
		if !cc.overNetwork || cc.link.Conn.Streams() == 0 || cc.link.Closed() {
			continue
		}
		w.wind(now)
		if cc.isAbsent(now) {
			w.absent = append(w.absent, cc)
		}
	}
	for i, cc := range w.absent {
		w.absent[i] = nil
		w.st.disconnects[disconnect{ofCaller, reasonNoAnswer}]++
		cc.link.Close(errSilent)
	}
	w.absent = w.absent[:0]
}

// isAbsent sends a PING to a silent caller, and reports whether it has left one unanswered.
func (cc *callerConn) isAbsent(now time.Duration) bool {
	switch heard := cc.link.Conn.Heard(); {
	case cc.asked == 0 || heard >= cc.asked:
		cc.asked = 0
		if now-heard >= absentAfter {
			cc.asked = now
			cc.acked, _ = cc.link.Acked()
			cc.link.Conn.Ping(keepAlivePing())
		}
		return false
	case now-cc.asked < keepAliveAnswer:
		return false
	}
	acked, behind := cc.link.Acked()
	if moves := behind && acked > cc.acked; moves {
		cc.asked, cc.acked = now, acked
		return false
	}
	return true
}
