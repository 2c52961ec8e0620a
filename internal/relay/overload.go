package relay

import (
	"log/slog"
	"time"

	"github.com/cabrank/cabrank/internal/rank"
)

// overloadGap is for how long no caller's newest call has gone first when an
// overload counts as over: while one lasts the order is tried the other way round
// now and then.
const overloadGap = 5 * time.Second

// overloads tells when more calls come than can be served in time, and when that is
// over.
//
// Concurrency: belongs to the pacer.
type overloads struct {
	log   *slog.Logger
	began time.Duration // of the overload that lasts
	calm  time.Duration // since when no newest call goes first; 0: one does
	lasts bool
}

// tell logs what has changed since the last call. It returns when it wants to be
// called next; 0 is any time.
func (o *overloads) tell(r *rank.Rank, now time.Duration) (next time.Duration) {
	callers := r.Overloaded()
	switch {
	case callers > 0:
		if o.calm = 0; !o.lasts {
			o.lasts, o.began = true, now
			o.log.Warn("overload: more calls come than can end before their deadlines; the newest go first",
				"callers", callers, "waiting", r.Waiting())
		}
	case o.lasts && o.calm == 0:
		o.calm = max(now, 1)
		return now + overloadGap
	case o.lasts && now-o.calm >= overloadGap:
		o.lasts = false
		o.log.Info("the overload is over", "lasted", (o.calm - o.began).Round(time.Millisecond), "waiting", r.Waiting())
	case o.lasts:
		return o.calm + overloadGap
	}
	return 0
}

// Overloaded reports whether an overload lasts: more calls come, of one caller at
// least, than can end before their deadlines.
func (r *Relay) Overloaded() bool { return r.overloaded.Load() }
