package relay

import (
	"log/slog"
	"time"

	"github.com/cabrank/cabrank/internal/rank"
)

// overloadGap is how long no caller's newest call goes first before an overload counts as
// over: during an overload the rank tries the usual order now and then.
const overloadGap = 5 * time.Second

// overloads logs the beginning and the end of overloads.
//
// Concurrency: belongs to the pacer.
type overloads struct {
	log   *slog.Logger
	began time.Duration // of the overload that lasts
	calm  time.Duration // when newest calls stopped going first; 0: they still do
	lasts bool
}

// tell logs changes since its last call. It returns when to call it next; 0: no need.
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

// Overloaded reports an overload: of at least one caller more calls come than can end before
// their deadlines.
func (r *Relay) Overloaded() bool { return r.overloaded.Load() }
