package relay

import (
	"time"

	"github.com/cabrank/cabrank/internal/shard"
)

const (
	// absentAfter is the silence of a caller with calls after which it is asked whether
	// it is there at all. gRPC's clients answer every PING and punish none.
	absentAfter = 30 * time.Second
	// absentLooks is how often callers are looked at. With keepAliveAnswer for the
	// answer a caller whose network is gone loses its calls within 55 s.
	absentLooks = 5 * time.Second
)

// absentWatch ends the connections of callers that are behind a network, have calls and
// are not there any more: nothing else would say so. What the system sends them goes
// nowhere, and a stream whose caller takes nothing need not have anything to send.
//
// A caller with a slow line, which has yet to get what lies in front of the PING, has
// another keepAliveAnswer as long as its machine acknowledges bytes.
//
// Its timer is wound only while there are such callers with calls.
// Concurrency: guarded by the lock of its shard.
type absentWatch struct {
	st     *stand
	timer  shard.Timer
	absent []*callerConn // scratch
}

func newAbsentWatch(st *stand) *absentWatch {
	w := &absentWatch{st: st}
	w.timer.Owner = w
	return w
}

// wind has the watch look again.
func (w *absentWatch) wind(now time.Duration) {
	if !w.timer.Set() {
		w.st.SetTimer(&w.timer, now+absentLooks)
	}
}

// Expired implements shard.Expirer.
func (w *absentWatch) Expired(_ *shard.Timer, now time.Duration) {
	for cc := range w.st.callers {
		if !cc.away || cc.link.Conn.Streams() == 0 || cc.link.Closed() {
			continue
		}
		w.wind(now)
		if cc.isAbsent(now) {
			w.absent = append(w.absent, cc)
		}
	}
	for i, cc := range w.absent {
		w.absent[i] = nil
		w.st.partings[parting{ofCaller, partingAbsent}]++
		cc.link.Close(errSilent)
	}
	w.absent = w.absent[:0]
}

// isAbsent asks a caller that is silent, and reports whether it has left that unanswered.
func (cc *callerConn) isAbsent(now time.Duration) bool {
	switch heard := cc.link.Conn.Heard(); {
	case cc.asked == 0 || heard >= cc.asked:
		cc.asked = 0
		if now-heard >= absentAfter {
			cc.asked = now
			cc.acked, _ = cc.link.Acked()
			cc.link.Conn.Ping(whetherThere())
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
