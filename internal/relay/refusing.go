package relay

import (
	"log/slog"
	"maps"

	"github.com/cabrank/cabrank/internal/rank"
)

// refusing tells of workers that keep refusing and therefore have fewer slots
// than they should (R1).
//
// Concurrency: belongs to the pacer.
type refusing struct {
	log     *slog.Logger
	changes uint64         // of the rank's slots, when it was last looked at
	left    map[string]int // slots of those that were told of, by name
}

// tell logs what has become worse since the last call, and what is over: a slot
// that is tried again now and then is not worth a line.
func (f *refusing) tell(r *rank.Rank) {
	changes := r.SlotChanges()
	if changes == f.changes {
		return
	}
	f.changes = changes
	if f.left == nil {
		f.left = make(map[string]int)
	}
	names := make(map[string]bool)
	for _, e := range r.Snapshot().Endpoints {
		names[e.Name] = true
		left, told := f.left[e.Name]
		if !told {
			left = e.Slots
		}
		switch now := e.Slots - e.Refused; {
		case now < left:
			f.log.Warn("worker keeps refusing calls and gets fewer at a time", "worker", e.Name, "slots", now, "of", e.Slots)
			f.left[e.Name] = now
		case told && now == e.Slots:
			f.log.Info("worker takes as many calls as it should again", "worker", e.Name, "slots", now)
			delete(f.left, e.Name)
		}
	}
	maps.DeleteFunc(f.left, func(name string, _ int) bool { return !names[name] }) // removed meanwhile
}
