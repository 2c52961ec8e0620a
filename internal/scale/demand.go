package scale

import (
	"math"
	"time"
)

const (
	// proof is how many standard deviations make a change of the load certain:
	// by chance alone it is seen less than once in a year.
	proof = 6.0
	// levelFor is the time over which the level of the load is averaged, and
	// levelMost up to which that is extended until levelCalls have come: fewer
	// calls leave its level open by more than a twentieth.
	levelFor   = time.Minute
	levelMost  = 5 * time.Minute
	levelCalls = 400
	// serviceFor is the least time over which run times are averaged; it grows
	// until serviceCalls have ended, since a few of them may be much longer.
	serviceFor   = 30 * time.Second
	serviceCalls = 2000
	// fewCalls have to end before they tell how long calls take.
	fewCalls = 10
	// standingFor is the time over which slots of calls that last are averaged.
	standingFor = 5 * time.Second
	// trendLeast and trendMost bound the time over which a slope is sought.
	trendLeast = 5 * time.Second
	trendMost  = time.Minute
	// riseMost is the longest time, in samples, that is compared with what came
	// before it; slower changes are the level's and the slope's business.
	riseMost = 128
	// suspicion is what a rise has to show, in standard deviations, to be looked
	// at more closely.
	suspicion = 3.0
)

// load is what is known of the demand at one moment.
type load struct {
	rate       float64 // arrivals per second
	ahead      float64 // the same when a worker that is started now would be ready
	service    float64 // seconds in a slot per call; 0 is not known
	standing   float64 // slots of calls that last, whatever the arrivals do
	doubt      float64 // relative standard deviation of rate times service
	dispersion float64 // variance of arrivals over their mean, at least 1
	since      time.Duration
}

// slots is the work that arrives, in slots that are busy with it at all times:
// Little's law.
func (l load) slots() float64 { return l.standing + l.rate*l.service }

// surely is the same, as far as the calls seen so far prove it: the first of them
// prove little.
func (l load) surely() float64 {
	return l.standing + l.rate*l.service*math.Max(0, 1-l.doubt)
}

// slotsAhead is the same when a worker that is started now would be ready.
func (l load) slotsAhead() float64 {
	return l.standing + l.ahead*l.service*math.Max(0, 1-l.doubt)
}

// demand measures the load.
type demand struct {
	history history
	since   time.Duration // of the last sudden rise of the arrivals
	before  float64       // the rate before it
}

// add takes a mark in; false if it came too soon to be kept.
func (d *demand) add(m mark) bool {
	if !d.history.add(m) {
		return false
	}
	d.since = min(max(d.since, d.history.marks[0].at), m.at) // m.at is less if the clock went back
	d.findRise()
	return true
}

// findRise looks for a recent time in which more calls have arrived than the load
// before it leads to by chance. What came before is then no longer the level. A
// rise has to show in both halves of that time: a batch of calls that came at once
// is no level.
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

// expectation is how many calls arrive in some time, if nothing changes.
type expectation struct{ mean, variance float64 }

// expect tells how many calls follow upon marks first to last within so many
// seconds, if their level or their certain slope goes on.
func (d *demand) expect(first, last int, seconds, dispersion float64) expectation {
	past := d.history.fit(first, last, dispersion)
	rate, unsure := past.rate, 1+seconds/past.length
	if math.Abs(past.sure) > proof {
		rate = past.after(seconds / 2)
		unsure = 1 + 4*seconds/past.length
	}
	return expectation{mean: rate * seconds, variance: dispersion * rate * seconds * unsure}
}

// measure sums up what is known of the load. boot is how long a worker takes to
// become ready.
func (d *demand) measure(boot time.Duration) load {
	h := &d.history
	end, now := h.end(), h.last().at
	l := load{dispersion: h.dispersion(h.from(now - levelFor)), since: d.since}
	var served float64
	l.service, l.standing, served = d.service()
	level := h.between(d.levelFrom(&l), end)
	if level.seconds <= 0 {
		return l
	}
	l.rate = level.arrivals / level.seconds
	l.doubt = math.Sqrt(l.dispersion/math.Max(level.arrivals, 1) + 1/math.Max(served, 1))
	l.ahead = l.rate
	if trend := h.fit(h.from(max(d.settled(), now-trendMost)), end, l.dispersion); trend.sure > proof && trend.length >= trendLeast.Seconds() {
		l.rate = math.Max(l.rate, trend.after(0))
		l.ahead = math.Max(l.rate, math.Min(trend.after((boot+reaction).Seconds()), 2*l.rate))
	}
	return l
}

// settled is from when on the level after the last rise is undisturbed: the first
// sample of a rise may have begun before it. As long as there is no other, it has
// to do.
func (d *demand) settled() time.Duration {
	if d.history.last().at-d.since < 4*step {
		return d.since
	}
	return d.since + step
}

// levelFrom returns the mark from which on the level of the load is averaged:
// longer if calls are long or few.
func (d *demand) levelFrom(l *load) int {
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

// service returns the mean time in a slot per call in seconds, how many slots
// are held by calls that last, and how many calls the time was learned from. With
// calls that still run it is what statistics of lives call the total time on
// test, over the number of deaths: right although some have not ended.
func (d *demand) service() (seconds, standing, served float64) {
	h := &d.history
	end, now := h.end(), h.last().at
	recent := h.between(h.from(now-standingFor), end)
	if recent.seconds > 0 {
		standing = recent.standing / recent.seconds
	}
	for back := serviceFor; ; back *= 2 {
		part := h.between(h.from(now-back), end)
		switch {
		case part.served < serviceCalls && now-back > h.marks[0].at:
			continue
		case part.served >= fewCalls:
			return math.Max(part.busy-part.standing, 0) / part.served, standing, part.served
		case recent.seconds > 0: // calls that do not end tell no more than that they are there
			standing = recent.busy / recent.seconds
		}
		return 0, standing, part.served
	}
}
