package scale

import (
	"math"
	"time"
)

const (
	// proof is how many standard deviations make a change of the load certain:
	// chance alone reaches it less than once in a year.
	proof = 6.0
	// levelFor is the time over which the level of the load is averaged. It is extended
	// up to levelMost until levelCalls have come: after fewer calls the level is
	// uncertain by more than a twentieth.
	levelFor   = time.Minute
	levelMost  = 5 * time.Minute
	levelCalls = 400
	// lateFor is the time over which calls are checked for taking longer than before.
	lateFor = 30 * time.Second
	// block is how many samples, 4 s, make one value of blockVariance.
	block = 16
	// fewCalls have to end before they tell how long calls take.
	fewCalls = 10
	// standingFor is the time over which slots of standing calls are averaged.
	standingFor = 5 * time.Second
	// trendLeast and trendMost bound the time over which a slope is sought.
	trendLeast = 5 * time.Second
	trendMost  = time.Minute
	// riseMost is the longest time, in samples, that is compared with the time before
	// it; slower changes show in the level and the slope.
	riseMost = 128
	// suspicion is the rise, in standard deviations, from which on findRise looks
	// closer.
	suspicion = 3.0
)

// estimate is an estimate of the demand at one moment.
type estimate struct {
	rate       float64 // arrivals per second
	ahead      float64 // the same when a worker that is started now would be ready
	service    float64 // seconds in a slot per call; 0 is not known
	standing   float64 // slots of standing calls: streams, which last whatever the arrivals do
	doubt      float64 // relative standard deviation of rate times service
	dispersion float64 // variance of arrivals over their mean, at least 1
	since      time.Duration
}

// slots is the arriving work, as the mean number of busy slots (Little's law).
func (l estimate) slots() float64 { return l.standing + l.rate*l.service }

// surely is the part of slots that the calls seen so far prove: the first calls prove
// little.
func (l estimate) surely() float64 {
	return l.standing + l.rate*l.service*math.Max(0, 1-l.doubt)
}

// slotsAhead is slots at the time when a worker that is started now would be ready; a
// slope is proven already.
func (l estimate) slotsAhead() float64 {
	if l.ahead <= l.rate {
		return l.surely()
	}
	return l.standing + l.ahead*l.service
}

// atMost is the highest slots that the calls allow.
func (l estimate) atMost() float64 { return l.standing + l.rate*l.service*(1+doubtRoom*l.doubt) }

// demand measures the load.
type demand struct {
	history history
	since   time.Duration // of the last sudden rise of the arrivals
	before  float64       // the rate before it

	// unequal is the last result of blockVariance, and sinceUnequal how many marks have come
	// since.
	unequal      float64
	sinceUnequal int
}

// add adds a mark. It reports false if the mark came too soon to be kept.
func (d *demand) add(m mark) bool {
	if !d.history.add(m) {
		return false
	}
	d.since = min(max(d.since, d.history.marks[0].at), m.at) // m.at is less if the clock went back
	d.findRise()
	d.sinceUnequal++
	if end := d.history.end(); d.sinceUnequal >= block || end < block {
		d.sinceUnequal, d.unequal = 0, d.history.blockVariance(d.history.between(0, end).perCall())
	}
	return true
}

// findRise looks for a recent time in which more calls have arrived than the load before
// it explains. The time before then no longer counts for the level. A rise has to show in
// both halves of that time: a batch of calls that came at once is not a level.
func (d *demand) findRise() {
	h := &d.history
	end := h.end()
	first := h.from(max(d.since, h.last().at-levelFor))
	dispersion := h.dispersion(h.from(h.last().at - levelFor))
	best, start := 1.0, 0
	for length := 2; length <= riseMost && end-length-first >= max(length, 4); length *= 2 {
		recent, past := h.between(end-length, end), h.between(first, end-length)
		level := past.arrivals / past.seconds * recent.seconds
		if recent.arrivals-level < suspicion*math.Sqrt(dispersion*level) {
			continue
		}
		usual := d.expect(first, end-length, recent.seconds, dispersion)
		excess := recent.arrivals - usual.mean
		late := h.between(end-length/2, end).arrivals - usual.mean/2
		certainty := excess / (proof*math.Sqrt(usual.variance) + proof*proof*dispersion/3)
		if certainty > best && late > excess/4 && late < 3*excess/4 {
			best, start = certainty, end-length
			d.before = usual.mean / recent.seconds
		}
	}
	if best > 1 {
		d.since = h.marks[start].at
	}
}

// expectation is how many calls arrive in some time if nothing changes.
type expectation struct{ mean, variance float64 }

// expect returns how many calls follow within seconds after the marks first to last, if
// their level or their certain slope goes on.
func (d *demand) expect(first, last int, seconds, dispersion float64) expectation {
	past := d.history.fit(first, last, dispersion)
	rate, unsure := past.rate, 1+seconds/past.length
	if math.Abs(past.sure) > proof {
		rate = past.after(seconds / 2)
		unsure = 1 + 4*seconds/past.length
	}
	return expectation{mean: rate * seconds, variance: dispersion * rate * seconds * unsure}
}

// measure estimates the load. boot is the time that a worker takes to become ready.
func (d *demand) measure(boot time.Duration) estimate {
	h := &d.history
	end, now := h.end(), h.last().at
	l := estimate{dispersion: h.dispersion(h.from(now - levelFor)), since: d.since}
	s := d.service()
	l.service, l.standing, l.doubt = s.seconds, s.standing, s.doubt
	level := h.between(d.levelFrom(&l), end)
	if level.seconds <= 0 {
		return l
	}
	l.rate = level.arrivals / level.seconds
	l.doubt = math.Min(1, math.Sqrt(l.dispersion/math.Max(level.arrivals, 1)+s.doubt*s.doubt))
	l.ahead = l.rate
	if trend := h.fit(h.from(max(d.settled(), now-trendMost)), end, l.dispersion); trend.sure > proof && trend.length >= trendLeast.Seconds() {
		l.rate = math.Max(l.rate, trend.after(0))
		l.ahead = math.Max(l.rate, math.Min(trend.after((boot+reaction).Seconds()), 2*l.rate))
	}
	return l
}

// settled is from when on the level after the last rise is undisturbed: the first sample
// of a rise may have begun before it, and is left out as soon as there are others.
func (d *demand) settled() time.Duration {
	if d.history.last().at-d.since < 4*step {
		return d.since
	}
	return d.since + step
}

// levelFrom returns the mark from which on the level of the load is averaged:
// longer if calls are long or few.
func (d *demand) levelFrom(l *estimate) int {
	h := &d.history
	now := h.last().at
	since := d.settled()
	least := time.Duration(min(levelCalls*l.service, levelMost.Seconds()) * float64(time.Second))
	for back := max(levelFor, least); ; back += levelFor {
		first := h.from(max(since, now-back))
		if back >= levelMost || now-back <= since || h.between(first, h.end()).arrivals >= levelCalls*l.dispersion {
			return first
		}
	}
}

// service is the time that calls have slots.
type service struct {
	seconds  float64 // per call, without standing calls; 0 is not known
	doubt    float64 // relative standard deviation of seconds
	standing float64 // slots of standing calls
}

// service measures the time in a slot per call, over all the history, unless the
// last part of it proves that calls take longer by now.
//
// Calls that still run count with their time so far: the total time on test over the
// number of deaths, as survival statistics call it, is right although some calls have not
// ended.
func (d *demand) service() service {
	h := &d.history
	end, now := h.end(), h.last().at
	recent := h.between(h.from(now-standingFor), end)
	all := h.between(0, end)
	switch {
	case recent.seconds <= 0:
		return service{}
	case all.served < fewCalls: // calls that do not end only tell that they run
		return service{doubt: 1, standing: recent.busy / recent.seconds}
	}
	s := service{seconds: all.perCall(), standing: recent.standing / recent.seconds}
	s.doubt = doubtOf(all, s.seconds, d.unequal)
	late := h.between(h.from(now-lateFor), end)
	if seconds, doubt := late.perCall(), doubtOf(late, s.seconds, d.unequal); late.served >= fewCalls && seconds > s.seconds*(1+proof*doubt) {
		s.seconds, s.doubt = seconds, doubt
	}
	return s
}

// perCall is the time in a slot per ended call, without standing calls.
func (s span) perCall() float64 { return math.Max(s.busy-s.standing, 0) / math.Max(s.served, 1) }

// doubtOf is the relative standard deviation of the time per call from a span, if each
// second adds variance to the variance of its sum.
func doubtOf(s span, perCall, variance float64) float64 {
	if perCall == 0 || s.served == 0 {
		return 1
	}
	return math.Min(1, math.Sqrt(variance*s.seconds)/(perCall*s.served))
}

// blockVariance is the variance, per second, of the slot time in a block of samples
// around the time that the calls ended there should have taken. It is measured, since
// the spread of run times is not known.
func (h *history) blockVariance(perCall float64) float64 {
	var squares, seconds float64
	for j := h.end(); j >= block; j -= block {
		part := h.between(j-block, j)
		off := part.busy - part.standing - perCall*part.served
		squares += off * off
		seconds += part.seconds
	}
	if seconds == 0 { // less than one block: run times are taken to be exponential
		all := h.between(0, h.end())
		return perCall * perCall * all.served / math.Max(all.seconds, 1)
	}
	return squares / seconds
}
