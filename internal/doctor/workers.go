package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/cabrank/cabrank/internal/admin"
)

const (
	// fewEnds within the looks make a crash loop, before Cabrank itself calls it one.
	fewEnds = 2
	// fewRefusals by workers may happen while threads come back, and so may a hundredth.
	fewRefusals   = 3
	someShare     = .01
	crowdInWorker = 2 // calls at a time in a worker that could as well wait outside

	// oneThread is the CPU time per second of a worker that runs one thread at a time, and
	// does nothing else. It is read once a second, so that it differs by a tenth.
	oneThread, oneThreadMost = .8, 1.15
	// idleCPU seconds per second are free, so that it is not the machine that is full.
	idleCPU = .4
)

// crashLoop finds workers that end again and again.
func crashLoop(r *record) *Finding {
	for _, w := range r.now.Workers {
		ends := total(w.Restarts) - total(before(r.then.Workers, w.Name).Restarts) - hung(w) + hung(before(r.then.Workers, w.Name))
		if w.State != "crash loop" && ends < fewEnds {
			continue
		}
		f := &Finding{
			Name: "crash_loop", Level: Error, Figures: map[string]float64{"restarts": float64(total(w.Restarts))},
			Says: fmt.Sprintf("%s ends again and again: %d times so far, the last time by %s", w.Name, total(w.Restarts), w.LastExit),
			Do:   "its last lines say why, the log has all of them; cabrank restart -- COMMAND starts another one",
		}
		if i := slices.IndexFunc(r.last.Workers, func(l admin.LiveWorker) bool { return l.Worker == w.Name }); i >= 0 {
			f.Lines = r.last.Workers[i].LastLines
		}
		return f
	}
	return nil
}

// before is a worker as it was at the first look.
func before(workers []admin.WorkerStatus, name string) (w admin.WorkerStatus) {
	if i := slices.IndexFunc(workers, func(w admin.WorkerStatus) bool { return w.Name == name }); i >= 0 {
		return workers[i]
	}
	return w
}

func total(counts map[string]int) (n int) {
	for _, times := range counts {
		n += times
	}
	return n
}

// hung is how often a worker was replaced because it was silent.
func hung(w admin.WorkerStatus) int { return w.Restarts["hung"] }

// noWorker finds that nobody serves.
func noWorker(r *record) *Finding {
	reached := slices.ContainsFunc(r.now.Upstreams, func(u admin.UpstreamStatus) bool { return u.State == "ready" })
	if r.now.Wanted == 0 && len(r.now.Upstreams) == 0 || r.now.Ready > 0 || reached || r.now.State == "stopping" {
		return nil
	}
	reason := "none has been ready yet"
	for _, w := range r.now.Workers {
		reason = cmp.Or(w.Reason, w.LastExit, reason)
	}
	for _, u := range r.now.Upstreams {
		reason = cmp.Or(u.Reason, reason)
	}
	return &Finding{
		Name: "no_worker", Level: Error, Figures: map[string]float64{"wanted": float64(r.now.Wanted)},
		Says: "no worker takes calls: " + reason,
		Do:   "cabrank status shows the state of each; workers.boot_timeout is how long a start may take",
	}
}

// sickWorker finds workers that are silent, say that they do not serve, or were replaced for it.
func sickWorker(r *record) *Finding {
	for _, w := range r.now.Workers {
		var why string
		then := before(r.then.Workers, w.Name)
		switch {
		case w.State == "suspect", w.State == "stopped":
			why = cmp.Or(w.Reason, "it is "+w.State)
		case w.State == "not serving" && then.State == w.State && then.PID == w.PID:
			why = cmp.Or(w.Reason, "it does not serve")
		case hung(w) > hung(then):
			why = "it was silent, and was replaced"
		default:
			continue
		}
		return &Finding{
			Name: "sick_worker", Level: Error, Figures: map[string]float64{"hung": float64(hung(w)), "in_flight": float64(w.InFlight)},
			Says: fmt.Sprintf("%s gets no new calls: %s", w.Name, why),
			Do:   fmt.Sprintf("cabrank drain %s replaces it; hang_timeout is how long one may be silent", w.Name),
		}
	}
	for _, u := range r.now.Upstreams {
		if u.Reason != "" && u.State != "ready" {
			return &Finding{
				Name: "sick_worker", Level: Error, Figures: map[string]float64{"in_flight": float64(u.InFlight)},
				Says: fmt.Sprintf("%s gets no calls: %s", u.Address, u.Reason),
				Do:   "look at that server; upstreams has its address",
			}
		}
	}
	return nil
}

// tooManySlots finds workers that are given more calls at a time than they run: they refuse
// some, or hold them while another worker could run them.
func tooManySlots(r *record) *Finding {
	refused := r.refused("refused_by_worker", "refusal_passed_on")
	if refused > fewRefusals && r.share(refused) >= someShare {
		return &Finding{
			Name: "too_many_slots", Level: Warning, Figures: map[string]float64{"refused": refused, "calls": r.calls},
			Says: fmt.Sprintf("workers refused %.0f of %.0f calls because all their threads were busy: they run fewer calls at a time than they have slots", refused, r.calls),
			Do:   "workers.slots: at most the threads of one worker",
		}
	}
	if !r.loaded() || r.last.Load.CPUs-(r.last.Load.CPU-r.first.Load.CPU).Seconds()/r.seconds < idleCPU {
		return nil
	}
	for _, w := range r.last.Workers {
		cpu, busy := r.cpuOf(w.Worker), r.busyOf(w.Worker)
		if cpu < oneThread || cpu > oneThreadMost || busy < crowdInWorker {
			continue
		}
		return &Finding{
			Name: "too_many_slots", Level: Warning, Figures: map[string]float64{"in_flight": busy, "cpu": cpu, "slots": float64(w.Slots)},
			Says: fmt.Sprintf("%s has %.1f calls at a time, and they share the time of one CPU: it runs one thread at a time, and the others wait in it, where no other worker can take them", w.Worker, busy),
			Do:   "workers.slots: 1, or a few if calls wait for databases, and more workers",
		}
	}
	return nil
}

// of is a worker at one look.
func of(l admin.Live, name string) (w admin.LiveWorker) {
	if i := slices.IndexFunc(l.Workers, func(w admin.LiveWorker) bool { return w.Worker == name }); i >= 0 {
		return l.Workers[i]
	}
	return w
}

// cpuOf is the CPU seconds per second that a worker has used.
func (r *record) cpuOf(name string) float64 {
	return (of(r.last, name).CPUSeconds - of(r.first, name).CPUSeconds) / r.seconds
}

// busyOf is how many calls a worker had on average.
func (r *record) busyOf(name string) float64 {
	sum := 0
	for _, l := range r.looks {
		sum += of(l, name).InFlight
	}
	return float64(sum) / float64(len(r.looks))
}

// slowWorker finds one that takes longer for its calls than the others do.
func slowWorker(r *record) *Finding {
	for _, w := range r.last.Workers {
		slow := 0
		for _, l := range r.looks {
			if of(l, w.Worker).Slow {
				slow++
			}
		}
		if !w.Slow || slow < len(r.looks)/2 {
			continue
		}
		return &Finding{
			Name: "slow_worker", Level: Warning, Figures: map[string]float64{"pace": w.Pace},
			Says: fmt.Sprintf("calls take %.1f times as long at %s as is usual for their methods", w.Pace, w.Worker),
			Do:   fmt.Sprintf("cabrank drain %s replaces it, or keeps calls from a server elsewhere", w.Worker),
		}
	}
	return nil
}

// lostPages are the results of looks at workers' metrics that say that a page cannot be read.
func lostPages() []string { return []string{"late", "long", "broken", "refused"} }

// pages finds workers whose metrics cannot be read.
func pages(r *record) *Finding {
	asked, lost := 0.0, 0.0
	var how []string
	for result := range r.last.Pages {
		n := r.grown(func(l admin.Live) uint64 { return l.Pages[result] })
		if asked += n; n > 0 && slices.Contains(lostPages(), result) {
			lost += n
			how = append(how, result)
		}
	}
	if lost == 0 {
		return nil
	}
	slices.Sort(how)
	return &Finding{
		Name: "pages_lost", Level: Warning, Figures: map[string]float64{"lost": lost, "asked": asked},
		Says: fmt.Sprintf("%.0f of %.0f metrics pages of workers could not be read (%s)", lost, asked, strings.Join(how, ", ")),
		Do:   "the log says what was odd; workers.metrics_path is where the page is",
	}
}

// noHealth finds workers that cannot say how they are.
func noHealth(r *record) *Finding {
	mute := 0
	for _, w := range r.last.Workers {
		if w.NoHealth {
			mute++
		}
	}
	if mute == 0 {
		return nil
	}
	return &Finding{
		Name: "no_health_service", Level: Notice, Figures: map[string]float64{"without": float64(mute)},
		Says: fmt.Sprintf("%d of %d workers have no health service: one that hangs is seen later, and one that is not ready yet gets calls", mute, len(r.last.Workers)),
		Do:   "serve grpc.health.v1.Health in the workers (docs/worker-health.md)",
	}
}
