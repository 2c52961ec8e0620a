package rank

import "time"

const (
	// ownAfter answers like a refusal of workers that had nothing else to do tell
	// that they are a method's own.
	ownAfter = 5
	// ownFor is for how long they are taken for that, after the last one of such a
	// worker.
	ownFor = 5 * time.Minute
)

// ownAnswers tells answers like a refusal that handlers of a method give from
// refusals: they pass on that another server was busy. A worker refuses nothing
// while all of its threads are idle; they do it at any time.
//
// Concurrency: belongs to the rank's lock.
type ownAnswers struct {
	alone int           // such answers of workers that had nothing else to do
	until time.Duration // when the method's are refusals again
}

// ownAnswer takes in an answer like a refusal, and reports whether it is one of the
// method's own, from which nothing is learned. While that was not known all workers
// may have lost slots by them, or one would not have come to have just one call: so
// they get them back.
func (r *Rank) ownAnswer(m *Method, e *Endpoint, now time.Duration) bool {
	own := &m.own
	if e.slots > 1 && e.others()+e.shrink.late.since(now-mostLate) == 0 {
		own.alone++
	}
	if own.alone >= ownAfter {
		own.alone = 0
		if now >= own.until {
			r.unlearnRefusals()
		}
		own.until = now + ownFor
	}
	return now < own.until
}

// unlearnRefusals takes back what refusals have taught that came one soon after the
// other. Slots that are rightly missed are found to be so once more.
func (r *Rank) unlearnRefusals() {
	for _, e := range r.endpoints {
		e.lateness.unlearn()
		e.shrink.restore()
		if e.relimit() {
			r.refresh(e)
		}
	}
	r.slotChanges.Add(1)
	r.poke()
}
